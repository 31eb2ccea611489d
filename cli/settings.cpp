// SPDX-License-Identifier: MIT
// Reads the configuration files: docs/configuration.md describes them.
#include "cli/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "cli/action.h"
#include "cli/assignments.h"
#include "cli/options.h"
#include "killfiles/strict_toml.h"
#include "killfiles/whole_file.h"
#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;
using killfiles::StrictTable;

constexpr double kShortestTimeout = 0.001;  // seconds
constexpr double kLongestTimeout = 24 * 3600;

// A later file's value takes the place of an earlier one's; what it leaves out stays.
void read_into(std::optional<std::string>& target, const StrictTable& table, std::string_view key) {
  std::optional<std::string> value = table.text(key);
  if (!value) return;
  if (value->empty()) table.refuse(key, "is empty");
  target = std::move(value);
}

void read_groups(Settings& settings, const StrictTable& table) {
  for (const std::string& name : table.keys()) {
    const bool is_plain = std::ranges::all_of(name, [](char each) {
      return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
             (each >= '0' && each <= '9') || each == '_' || each == '.' || each == '-';
    });
    if (name.empty() || !is_plain)
      table.refuse(name, "a group's name holds letters from a to z, digits, '_', '.' and '-' only");
    const std::string hosts = table.text(name).value();
    if (hosts.empty()) table.refuse(name, "is empty");
    settings.groups[name] = hosts;
  }
}

void read_ssh(Settings& settings, const StrictTable& table) {
  table.require_known({"connect_timeout", "width", "config_file", "program", "ask"});
  if (const std::optional<double> seconds = table.number("connect_timeout")) {
    // Written so that NaN is refused too.
    if (!(*seconds >= kShortestTimeout && *seconds <= kLongestTimeout)) {
      table.refuse("connect_timeout", fmt::format("{} is no number of seconds from {} to {}",
                                                  *seconds, kShortestTimeout, kLongestTimeout));
    }
    settings.connect_timeout = from_seconds(*seconds);
  }
  if (const std::optional<std::int64_t> width = table.integer("width")) {
    if (*width < 1) table.refuse("width", fmt::format("{} is not a positive number", *width));
    settings.width = static_cast<std::size_t>(*width);
  }
  read_into(settings.ssh_config_file, table, "config_file");
  read_into(settings.ssh_program, table, "program");
  const std::string program = settings.ssh_program.value_or("auto");
  if (program != "auto" && program != "libssh" && program != "ssh")
    table.refuse("program", "is not one of auto, libssh and ssh");
  read_into(settings.ssh_ask, table, "ask");
  const std::string ask = settings.ssh_ask.value_or("each");
  if (ask != "each" && ask != "once") table.refuse("ask", "is neither each nor once");
}

void read_connections(Settings& settings, const StrictTable& table) {
  constexpr std::int64_t kLongest = 24 * 3600;
  table.require_known({"keep"});
  if (const std::optional<std::int64_t> seconds = table.integer("keep")) {
    if (*seconds < 0 || *seconds > kLongest)
      table.refuse("keep",
                   fmt::format("{} is no number of seconds from 0 to {}", *seconds, kLongest));
    settings.keep_connections = std::chrono::seconds(*seconds);
  }
}

// A positive number or `auto`.
std::string read_nproc_per_node(const StrictTable& table) {
  constexpr std::string_view kKey = "nproc_per_node";
  if (table.holds_text(kKey)) {
    if (table.text(kKey) == "auto") return "auto";
  } else {
    const std::int64_t count = table.integer(kKey).value();
    if (count >= 1 && count <= kMostProcesses) return std::to_string(count);
  }
  table.refuse(kKey, fmt::format("is neither a number from 1 to {} nor 'auto'", kMostProcesses));
}

void read_run(Settings& settings, const StrictTable& table) {
  table.require_known({"code_path", "env_activate_path", "output_dir", "nproc_per_node",
                       "lost_after", "exclude", "relay", "own_tree", "modules", "container",
                       "container_engine", "bind"});
  read_into(settings.code_path, table, "code_path");
  read_into(settings.env_activate_path, table, "env_activate_path");
  read_into(settings.output_dir, table, "output_dir");
  if (table.has("nproc_per_node")) settings.nproc_per_node = read_nproc_per_node(table);
  if (const auto seconds = table.integer("lost_after")) {
    if (*seconds < 1 || *seconds > kLongestSilence)
      table.refuse("lost_after", fmt::format("{} is no number of seconds from 1 to {}", *seconds,
                                             kLongestSilence));
    settings.lost_after = static_cast<int>(*seconds);
  }
  if (auto patterns = table.texts("exclude")) settings.exclude = std::move(*patterns);
  if (const auto relay = table.boolean("relay")) settings.relay = relay;
  if (const auto own_tree = table.boolean("own_tree")) settings.own_tree = own_tree;
  read_into(settings.modules, table, "modules");
  read_into(settings.container, table, "container");
  read_into(settings.container_engine, table, "container_engine");
  const std::string engine = settings.container_engine.value_or("podman");
  if (engine != "apptainer" && engine != "podman" && engine != "charliecloud")
    table.refuse("container_engine", "is not one of apptainer, podman and charliecloud");
  if (auto binds = table.texts("bind")) settings.bind = std::move(*binds);
}

void read_environment(Settings& settings, const StrictTable& table) {
  for (const std::string& name : table.keys()) {
    if (!is_variable_name(name)) table.refuse(name, "is no name of a variable");
    if (name.starts_with("DTOOL_")) table.refuse(name, "is set by dtool itself");
    const std::string value = table.text(name).value();
    if (value.find('\0') != std::string::npos) table.refuse(name, "holds a NUL character");
    settings.environment[name] = value;
  }
}

/// Nothing if there is none.
std::optional<std::string> text_of(const fs::path& file) {
  std::error_code ignored;
  const auto kind = fs::status(file, ignored).type();
  if (kind == fs::file_type::not_found) return std::nullopt;
  // A link to a device or a pipe, which a repository can hold, would never end.
  if (kind != fs::file_type::regular && kind != fs::file_type::none)
    throw std::invalid_argument(fmt::format("{}: is no regular file", file.string()));
  try {
    return killfiles::read_whole(file);
  } catch (const std::system_error& fault) {
    if (fault.code() == std::errc::no_such_file_or_directory) return std::nullopt;
    throw std::invalid_argument(fault.what());
  }
}

void read_text(Settings& settings, const std::string& text, const fs::path& file) {
  const StrictTable root = StrictTable::parse(text, file.string());
  root.require_known({"runs_on", "groups", "ssh", "connections", "run", "environment"});
  read_into(settings.runs_on, root, "runs_on");
  if (const auto table = root.table("groups")) read_groups(settings, *table);
  if (const auto table = root.table("ssh")) read_ssh(settings, *table);
  if (const auto table = root.table("connections")) read_connections(settings, *table);
  if (const auto table = root.table("run")) read_run(settings, *table);
  if (const auto table = root.table("environment")) read_environment(settings, *table);
}

/// The keys that a project's file may set without acceptance: how long to wait, how many hosts to
/// serve at once, what not to send, where to make a run's folder. All other keys, also future ones,
/// must be accepted.
constexpr std::array<std::string_view, 8> kHarmless = {
    "ssh.connect_timeout", "ssh.width",   "run.output_dir", "run.nproc_per_node",
    "run.lost_after",      "run.exclude", "run.relay",      "run.own_tree"};

std::vector<std::string> keys_to_accept(const std::string& text, const fs::path& file) {
  const StrictTable root = StrictTable::parse(text, file.string());
  std::vector<std::string> found;
  for (const std::string& name : root.keys()) {
    if (name != "ssh" && name != "run" && name != "connections") {
      found.push_back(name);
      continue;
    }
    const auto table = root.table(name);
    for (const std::string& key : table->keys()) {
      const std::string whole = name + "." + key;
      if (std::ranges::find(kHarmless, whole) == kHarmless.end()) found.push_back(whole);
    }
  }
  return found;
}

std::string sha256(std::initializer_list<std::string_view> texts) {
  ssh::Sha256 sum;
  for (const std::string_view text : texts) sum.add(text);
  return sum.hex();
}

/// One file for each project's file, so that two that are accepted at once do not meet.
fs::path acceptance_of(const ProjectFile& file) {
  return ssh::home_folder() / ".dtool" / "accepted_settings" / sha256({file.path.native()});
}

/// The digest of the file's content.
std::string digest_of(const ProjectFile& file) {
  return sha256({file.path.native(), std::string_view("", 1), file.text}) + "\n";
}

}  // namespace

std::optional<ProjectFile> read_project_file(const fs::path& file) {
  const auto text = text_of(file);
  if (!text) return std::nullopt;
  Settings ignored;
  read_text(ignored, *text, file);  // so that mistakes are told before anything is asked
  return ProjectFile{fs::canonical(file), *text, keys_to_accept(*text, file)};
}

bool is_accepted(const ProjectFile& file) {
  return file.to_accept.empty() || text_of(acceptance_of(file)) == digest_of(file);
}

void accept(const ProjectFile& file) {
  killfiles::write_whole(acceptance_of(file), digest_of(file));
}

const UserSettings& SettingsFiles::users() {
  if (!users_) {
    users_.emplace();
    if (const auto text = text_of(user_file_)) read_text(users_->settings, *text, user_file_);
  }
  return *users_;
}

const Settings& SettingsFiles::all() {
  if (all_) return *all_;
  Settings settings = users().settings;
  if (const auto project = read_project_file(project_file_)) {
    if (!is_accepted(*project)) {
      throw UsageError(
          fmt::format(
              "{} decides whom dtool reaches or what runs, and you have not accepted it: {}",
              project->path.string(), fmt::join(project->to_accept, ", ")),
          "dtool trust --settings shows it, and asks");
    }
    read_text(settings, project->text, project_file_);
  }
  all_ = std::move(settings);
  return *all_;
}

}  // namespace dtool::cli
