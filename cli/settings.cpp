// SPDX-License-Identifier: MIT
// Reads the configuration files: docs/configuration.md describes them.
#include "cli/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "cli/action.h"
#include "cli/assignments.h"
#include "cli/options.h"
#include "killfiles/run.h"
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
constexpr std::int64_t kLongestKept = 24 * 3600;  // seconds

/// Reads `from` and `only` of a group; a file is looked for in the folder of the settings.
NamedGroup read_source(const StrictTable& table, const fs::path& folder) {
  table.require_known({"from", "only"});
  const std::string from = table.text("from").value_or("");
  NamedGroup group{"", from.substr(0, from.find(':')), "", table.text("only").value_or("")};
  const std::size_t argument = from.find_first_not_of(" \t", group.from.size() + 1);
  if (argument != from.npos) group.argument = from.substr(argument);
  const bool is_file = group.from == "ansible" || group.from == "genders";
  const bool is_bare = group.from == "ssh_config" || group.from == "slurm";
  const bool is_known = is_file || is_bare || group.from == "command";
  if (!is_known || is_bare != group.argument.empty())
    table.refuse("from", "is not command: LINE, ansible: FILE, genders: FILE, ssh_config or slurm");
  if (table.has("only") && (group.only.empty() || (!is_file && group.from != "slurm")))
    table.refuse("only",
                 "names a group of ansible, an attribute of genders or a partition of slurm");
  if (is_file) group.argument = folder / ssh::from_home(group.argument);
  return group;
}

void read_groups(Settings& settings, const StrictTable& table, const fs::path& folder) {
  for (const std::string& name : table.keys()) {
    const bool is_plain = std::ranges::all_of(name, [](char each) {
      return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
             (each >= '0' && each <= '9') || each == '_' || each == '.' || each == '-';
    });
    if (name.empty() || !is_plain)
      table.refuse(name, "a group's name holds letters from a to z, digits, '_', '.' and '-' only");
    NamedGroup& group = settings.groups[name];
    if (!table.holds_text(name) && !table.is_list(name)) {
      group = read_source(table.table(name).value(), folder);
      continue;
    }
    group = {table.text(name).value(), "", "", ""};
    if (group.hosts.empty()) table.refuse(name, "is empty");
  }
}

/// `little`: a project's file may set the key without acceptance: how long to wait, how many hosts
/// to serve at once, what not to send, where to make a run's folder. `much`: whom dtool reaches, or
/// what runs.
enum class Decides { little, much };

/// A key of `[ssh]`, `[connections]` or `[run]`. A later file's value takes the place of an earlier
/// one's; what it leaves out stays.
struct ConfigKey {
  std::string_view table;
  std::string_view name;
  Decides decides = Decides::much;
  std::function<void(Settings&, const StrictTable&, std::string_view name)> read;
};

// How a value is read: each returns what ConfigKey::read wants.

auto as_text(std::optional<std::string> Settings::*member) {
  return [member](Settings& settings, const StrictTable& table, std::string_view name) {
    const std::string value = table.text(name).value();
    if (value.empty()) table.refuse(name, "is empty");
    settings.*member = value;
  };
}

auto as_word(std::optional<std::string> Settings::*member, std::vector<std::string> words) {
  return [=](Settings& settings, const StrictTable& table, std::string_view name) {
    as_text(member)(settings, table, name);
    if (std::ranges::count(words, *(settings.*member)) > 0) return;
    const std::vector<std::string> first(words.begin(), words.end() - 1);
    table.refuse(name, words.size() == 2 ? fmt::format("is neither {} nor {}", words[0], words[1])
                                         : fmt::format("is not one of {} and {}",
                                                       fmt::join(first, ", "), words.back()));
  };
}

template <typename Value>
auto as_seconds(std::optional<Value> Settings::*member, std::int64_t least, std::int64_t most) {
  return [=](Settings& settings, const StrictTable& table, std::string_view name) {
    const std::int64_t number = table.integer(name).value();
    if (number < least || number > most)
      table.refuse(name,
                   fmt::format("{} is no number of seconds from {} to {}", number, least, most));
    settings.*member = Value(static_cast<int>(number));
  };
}

auto as_read(auto Settings::*member, auto read) {
  return [=](Settings& settings, const StrictTable& table, std::string_view name) {
    settings.*member = (table.*read)(name).value();
  };
}

auto as_amount(std::optional<double> Settings::*member, double most) {
  return [=](Settings& settings, const StrictTable& table, std::string_view name) {
    settings.*member = table.number(name).value();
    if (const double number = *(settings.*member); !(number >= 0 && number <= most))
      table.refuse(name, fmt::format("{} is no number from 0 to {}", number, most));
  };
}

void read_connect_timeout(Settings& settings, const StrictTable& table, std::string_view name) {
  const double number = table.number(name).value();
  // Written so that NaN is refused too.
  if (!(number >= kShortestTimeout && number <= kLongestTimeout))
    table.refuse(name, fmt::format("{} is no number of seconds from {} to {}", number,
                                   kShortestTimeout, kLongestTimeout));
  settings.connect_timeout = from_seconds(number);
}

void read_width(Settings& settings, const StrictTable& table, std::string_view name) {
  const std::int64_t width = table.integer(name).value();
  if (width < 1) table.refuse(name, fmt::format("{} is not a positive number", width));
  settings.width = static_cast<std::size_t>(width);
}

// A positive number or `auto`.
void read_nproc_per_node(Settings& settings, const StrictTable& table, std::string_view name) {
  const bool is_text = table.holds_text(name);
  const std::int64_t count = is_text ? 0 : table.integer(name).value();
  if (is_text ? table.text(name) != "auto" : count < 1 || count > kMostProcesses)
    table.refuse(name, fmt::format("is neither a number from 1 to {} nor 'auto'", kMostProcesses));
  settings.nproc_per_node = is_text ? "auto" : std::to_string(count);
}

/// The tables in which the keys stand.
constexpr std::array kTables = {"ssh", "connections", "run", "clean"};

const std::vector<ConfigKey>& config_keys() {
  using enum Decides;
  using S = Settings;
  static const std::vector<ConfigKey> keys = {
      {"ssh", "connect_timeout", little, read_connect_timeout},
      {"ssh", "width", little, read_width},
      {"ssh", "config_file", much, as_text(&S::ssh_config_file)},
      {"ssh", "program", much, as_word(&S::ssh_program, {"auto", "libssh", "ssh"})},
      {"ssh", "ask", much, as_word(&S::ssh_ask, {"each", "once"})},
      {"connections", "keep", much, as_seconds(&S::keep_connections, 0, kLongestKept)},
      {"run", "code_path", much, as_text(&S::code_path)},
      {"run", "env_activate_path", much, as_text(&S::env_activate_path)},
      {"run", "output_dir", little, as_text(&S::output_dir)},
      {"run", "nproc_per_node", little, read_nproc_per_node},
      {"run", "lost_after", little, as_seconds(&S::lost_after, 1, killfiles::kLongestSilence)},
      {"run", "exclude", little, as_read(&S::exclude, &StrictTable::texts)},
      {"run", "relay", little, as_read(&S::relay, &StrictTable::boolean)},
      {"run", "own_tree", little, as_read(&S::own_tree, &StrictTable::boolean)},
      {"run", "modules", much, as_text(&S::modules)},
      {"run", "container", much, as_text(&S::container)},
      {"run", "container_engine", much,
       as_word(&S::container_engine, {"apptainer", "podman", "charliecloud"})},
      {"run", "bind", much, as_read(&S::bind, &StrictTable::texts)},
      {"clean", "older_than", little, as_amount(&S::clean_older_than, 36500)},
      {"clean", "max_gb", little, as_amount(&S::clean_max_gb, 1e6)}};
  return keys;
}

void read_table(Settings& settings, const StrictTable& root, std::string_view name) {
  const auto table = root.table(name);
  if (!table) return;
  std::vector<std::string> known;
  for (const ConfigKey& each : config_keys()) {
    if (each.table == name) known.emplace_back(each.name);
  }
  table->require_known(known);
  for (const ConfigKey& each : config_keys()) {
    if (each.table == name && table->has(each.name)) each.read(settings, *table, each.name);
  }
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
  std::vector<std::string> known(kTables.begin(), kTables.end());
  known.insert(known.end(), {"runs_on", "groups", "environment"});
  root.require_known(known);
  if (root.has("runs_on")) as_text (&Settings::runs_on)(settings, root, "runs_on");
  if (const auto table = root.table("groups"))
    read_groups(settings, *table, fs::absolute(file).parent_path());
  for (const char* const name : kTables) read_table(settings, root, name);
  if (const auto table = root.table("environment")) read_environment(settings, *table);
}

/// All that decides whom dtool reaches, or what runs; also keys that come later.
std::vector<std::string> keys_to_accept(const std::string& text, const fs::path& file) {
  const StrictTable root = StrictTable::parse(text, file.string());
  std::vector<std::string> found;
  for (const std::string& name : root.keys()) {
    if (std::ranges::count(kTables, name) == 0) {
      found.push_back(name);
      continue;
    }
    const auto table = root.table(name);
    for (const std::string& key : table->keys()) {
      const bool is_harmless = std::ranges::any_of(config_keys(), [&](const ConfigKey& each) {
        return each.decides == Decides::little && each.table == name && each.name == key;
      });
      if (!is_harmless) found.push_back(name + "." + key);
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
