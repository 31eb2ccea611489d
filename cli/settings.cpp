// Reads the configuration files: docs/configuration.md describes them.
#include "cli/settings.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>
#include <system_error>

#include "cli/assignments.h"
#include "cli/flag_values.h"
#include "killfiles/strict_toml.h"
#include "killfiles/whole_file.h"

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
    if (name.empty() || name.find_first_of("@,[] \t") != std::string::npos) {
      table.refuse(name, "a group's name holds no blanks, '@', ',' or brackets");
    }
    const std::string hosts = table.text(name).value();
    if (hosts.empty()) table.refuse(name, "is empty");
    settings.groups[name] = hosts;
  }
}

void read_ssh(Settings& settings, const StrictTable& table) {
  table.require_known({"connect_timeout", "width", "config_file"});
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
  table.require_known({"code_path", "env_activate_path", "output_dir", "nproc_per_node", "exclude",
                       "relay", "modules", "container", "container_engine", "bind"});
  read_into(settings.code_path, table, "code_path");
  read_into(settings.env_activate_path, table, "env_activate_path");
  read_into(settings.output_dir, table, "output_dir");
  if (table.has("nproc_per_node")) settings.nproc_per_node = read_nproc_per_node(table);
  if (auto patterns = table.texts("exclude")) settings.exclude = std::move(*patterns);
  if (const auto relay = table.boolean("relay")) settings.relay = relay;
  read_into(settings.modules, table, "modules");
  read_into(settings.container, table, "container");
  read_into(settings.container_engine, table, "container_engine");
  const std::string engine = settings.container_engine.value_or("podman");
  if (engine != "apptainer" && engine != "podman" && engine != "charliecloud")
    table.refuse("container_engine", "is none of apptainer, podman and charliecloud");
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

void read_file(Settings& settings, const fs::path& file) {
  std::string text;
  try {
    text = killfiles::read_whole(file);
  } catch (const std::system_error& fault) {
    if (fault.code() == std::errc::no_such_file_or_directory) return;
    throw std::invalid_argument(fault.what());
  }
  const StrictTable root = StrictTable::parse(text, file.string());
  root.require_known({"runs_on", "groups", "ssh", "connections", "run", "environment"});
  read_into(settings.runs_on, root, "runs_on");
  if (const auto table = root.table("groups")) read_groups(settings, *table);
  if (const auto table = root.table("ssh")) read_ssh(settings, *table);
  if (const auto table = root.table("connections")) read_connections(settings, *table);
  if (const auto table = root.table("run")) read_run(settings, *table);
  if (const auto table = root.table("environment")) read_environment(settings, *table);
}

}  // namespace

Settings read_settings(const fs::path& user_file, const fs::path& project_file) {
  Settings settings;
  read_file(settings, user_file);
  read_file(settings, project_file);
  return settings;
}

}  // namespace dtool::cli
