// SPDX-License-Identifier: MIT
// A killfile's text. It is written by hand to keep the order of the keys, and read through
// StrictTable.
//
// The number of machines stands before them, and every key but those that are Kept::if_set is
// always written. So a file that was cut short is recognised.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "killfiles/killfile.h"
#include "killfiles/strict_toml.h"

namespace dtool::killfiles {
namespace {

constexpr std::int64_t kFormat = 1;

bool is_anchored(std::string_view path) {
  return path.empty() || path.starts_with('/') || path.starts_with("~/");
}

std::string line(std::string_view key, std::string_view value) {
  return fmt::format("{} = {}\n", key, to_toml(value));
}

std::string line(std::string_view key, const std::vector<std::string>& values) {
  std::string text = fmt::format("{} = [", key);
  for (std::size_t i = 0; i < values.size(); ++i) text += (i == 0 ? "" : ", ") + to_toml(values[i]);
  return text + "]\n";
}

std::string line(std::string_view key, int value) {
  return fmt::format("{} = {}\n", key, value);
}

/// TOML's integers are signed; a larger number is written as a string.
template <typename Number>
std::string line(std::string_view key, const std::optional<Number>& value) {
  if (!value) return "";
  const bool fits = std::in_range<std::int64_t>(*value);
  return fmt::format(fmt::runtime(fits ? "{} = {}\n" : "{} = \"{}\"\n"), key, *value);
}

/// Without the fields that killfiles do not have.
Killfile as_kept(Killfile killfile) {
  visit_rows(killfile, [](const Row& row, auto& value) {
    if (row.in_killfile == Kept::no) value = {};
  });
  return killfile;
}

std::vector<std::string> join_settings(const Killfile& killfile) {
  std::vector<std::string> joined;
  for (const auto& [keyword, value] : killfile.ssh_settings) {
    if (keyword.find('=') != std::string::npos) {
      throw std::invalid_argument(fmt::format("an SSH keyword does not hold '=': '{}'", keyword));
    }
    joined.push_back(keyword + "=" + value);
  }
  return joined;
}

std::string require_text(const StrictTable& table, std::string_view key) {
  const std::optional<std::string> text = table.text(key);
  if (!text) table.refuse(key, "is missing\nhint: the file was edited or cut short");
  return from_toml(*text);
}

std::vector<std::string> require_texts(const StrictTable& table, std::string_view key) {
  std::optional<std::vector<std::string>> texts = table.texts(key);
  if (!texts) table.refuse(key, "is missing\nhint: the file was edited or cut short");
  for (std::string& text : *texts) text = from_toml(text);
  return *texts;
}

int require_count(const StrictTable& table, std::string_view key) {
  const std::optional<std::int64_t> count = table.integer(key);
  if (!count) table.refuse(key, "is missing\nhint: the file was edited or cut short");
  if (*count < 0 || *count > std::numeric_limits<int>::max()) {
    table.refuse(key, fmt::format("{} is out of range", *count));
  }
  return static_cast<int>(*count);
}

// A field of the run from the file.

void take(const StrictTable& table, std::string_view key, std::string& value) {
  value = require_text(table, key);
}

void take(const StrictTable& table, std::string_view key, std::vector<std::string>& value) {
  value = require_texts(table, key);
}

void take(const StrictTable& table, std::string_view key, int& value) {
  value = require_count(table, key);
}

void take(const StrictTable& table, std::string_view key, std::optional<int>& value) {
  value = require_count(table, key);
}

void take(const StrictTable& table, std::string_view key, std::optional<std::uint64_t>& value) {
  const std::string digits =
      table.holds_text(key) ? table.text(key).value() : std::to_string(table.integer(key).value());
  const bool is_number =
      !digits.empty() && digits.size() <= 20 && std::ranges::all_of(digits, is_digit);
  if (!is_number || (digits.size() == 20 && digits > "18446744073709551615"))
    table.refuse(key, fmt::format("'{}' is no number from 0 to 18446744073709551615", digits));
  value = std::stoull(digits);
}

const char* key_of(const Row& row) {
  return *row.key == '\0' ? row.name : row.key;
}

void read_run(const StrictTable& table, Run& run) {
  assume_older(run);
  visit_rows(run, [&table](const Row& row, auto& value) {
    if (row.in_killfile == Kept::no) return;
    if (row.in_killfile == Kept::yes || table.has(key_of(row))) take(table, key_of(row), value);
  });
  refuse_faults(
      run, [&table](const char* name, const std::string& fault) { table.refuse(name, fault); });
}

RunKind read_kind(const StrictTable& table) {
  const std::string kind = require_text(table, "kind");
  if (kind != "run" && kind != "config") {
    table.refuse("kind", fmt::format("'{}' is neither 'run' nor 'config'", kind));
  }
  return kind == "run" ? RunKind::run : RunKind::config;
}

std::vector<std::pair<std::string, std::string>> read_settings(const StrictTable& table) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const std::string& joined : require_texts(table, "ssh_settings")) {
    const std::size_t equals = joined.find('=');
    if (equals == std::string::npos) {
      table.refuse("ssh_settings", fmt::format("'{}' is not of the form Keyword=value", joined));
    }
    settings.emplace_back(joined.substr(0, equals), joined.substr(equals + 1));
  }
  return settings;
}

/// What a key of a machine holds. A file of an older dtool has none of the host's identity.
enum class Holds { value, identity, path };

/// Calls `visit` for each key of a machine, in the order of the text. The identity is not at the
/// end: a file that was cut short there would look like one from an older dtool.
template <typename AnyMachine, typename Visit>
void visit_keys(AnyMachine& machine, Visit visit) {
  visit("id", Holds::value, machine.id);
  visit("host", Holds::value, machine.host);
  visit("machine_id", Holds::identity, machine.identity.machine_id);
  visit("host_name", Holds::identity, machine.identity.name);
  visit("boot_id", Holds::identity, machine.identity.boot_id);
  visit("process_namespace", Holds::identity, machine.identity.process_namespace);
  visit("host_key", Holds::identity, machine.identity.host_key);
  visit("session", Holds::value, machine.session);
  visit("state_folder", Holds::path, machine.state_folder);
  visit("log", Holds::path, machine.log);
  visit("output_folder", Holds::path, machine.output_folder);
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys = {
      "format",       "kind",          "nproc_per_node", "code_path",
      "coordinator",  "job",           "ended",          "ssh_config_file",
      "ssh_settings", "machine_count", "machine"};
  visit_rows(Run(), [&keys](const Row& row, const auto&) {
    if (row.in_killfile != Kept::no) keys.emplace_back(key_of(row));
  });
  return keys;
}

void require_known(const StrictTable& table, const std::vector<std::string>& keys) {
  try {
    table.require_known(keys);
  } catch (const std::invalid_argument& fault) {
    throw std::invalid_argument(std::string(fault.what()) + " (or a newer dtool wrote the file)");
  }
}

Machine read_machine(const StrictTable& table) {
  Machine machine;
  std::vector<std::string> keys;
  bool has_identity = false;
  visit_keys(machine, [&](const char* key, Holds holds, const auto&) {
    keys.emplace_back(key);
    has_identity = has_identity || (holds == Holds::identity && table.has(key));
  });
  require_known(table, keys);
  visit_keys(machine, [&](const char* key, Holds holds, auto& value) {
    if (holds != Holds::identity || has_identity) take(table, key, value);
    if constexpr (std::is_same_v<decltype(value), std::string&>)
      if (holds == Holds::path && !is_anchored(value))
        table.refuse(key, fmt::format("'{}' begins neither with '/' nor with '~/'", value));
  });
  if (!is_well_formed(machine.identity))
    table.refuse("machine_id", "and what follows are of no host\nhint: the file was edited");
  return machine;
}

/// Refuses a state folder that is not this run's: on the host, scripts in that folder are run to
/// end the run.
void require_own_state_folder(const StrictTable& entry, const Machine& machine,
                              const std::string& run_id) {
  const std::string own = state_folder(run_id, machine.id);
  if (machine.state_folder.empty() || machine.state_folder == own) return;
  entry.refuse("state_folder", fmt::format("'{}' is not {}\nhint: the file was edited, and what "
                                           "lies in another folder is not to be run",
                                           machine.state_folder, own));
}

std::vector<Machine> read_machines(const StrictTable& table, const std::string& run_id) {
  const std::size_t count = static_cast<std::size_t>(require_count(table, "machine_count"));
  const std::vector<StrictTable> tables =
      table.tables("machine").value_or(std::vector<StrictTable>());
  if (tables.size() != count) {
    table.refuse("machine_count", fmt::format("the file should name {} machines and names {}\n"
                                              "hint: the file was edited or cut short",
                                              count, tables.size()));
  }
  std::vector<Machine> machines;
  std::set<int> ids;
  for (const StrictTable& entry : tables) {
    machines.push_back(read_machine(entry));
    if (!ids.insert(machines.back().id).second) {
      entry.refuse("id", fmt::format("two machines have the id {}", machines.back().id));
    }
    require_own_state_folder(entry, machines.back(), run_id);
  }
  return machines;
}

}  // namespace

std::string run_folder(const std::string& run_id) {
  return "~/.dtool/runs/" + run_id;
}

std::string tree_folder(const std::string& run_id) {
  return run_folder(run_id) + "/tree";
}

std::string state_folder(const std::string& run_id, int id) {
  return fmt::format("{}/machine{}", run_folder(run_id), id);
}

std::string to_text(const Killfile& killfile) {
  const std::string& id = killfile.run_id;
  std::string text = fmt::format("# written by dtool; `dtool kill {}` ends this run\n", id);
  text += fmt::format("format = {}\n", kFormat);
  visit_rows(killfile, [&text](const Row& row, const auto& value) {
    const bool is_left_out =
        row.in_killfile == Kept::if_set && value == std::decay_t<decltype(value)>();
    if (row.in_killfile != Kept::no && !is_left_out) text += line(key_of(row), value);
  });
  text += line("kind", killfile.kind == RunKind::run ? "run" : "config");
  text += line("nproc_per_node", killfile.nproc_per_node);
  text += line("code_path", killfile.code_path);
  text += line("coordinator", killfile.coordinator);
  text += line("job", killfile.job);
  text += line("ended", killfile.ended);
  text += line("ssh_config_file", killfile.ssh_config_file);
  text += line("ssh_settings", join_settings(killfile));
  text += fmt::format("machine_count = {}\n", killfile.machines.size());
  for (const Machine& machine : killfile.machines) {
    text += "\n[[machine]]\n";
    visit_keys(machine,
               [&text](const char* key, Holds, const auto& value) { text += line(key, value); });
  }
  // A killfile that cannot be read back must not be written: when things go wrong, it is the only
  // record of the run.
  if (parse(text, "killfile of run '" + id + "'") != as_kept(killfile)) {
    throw std::logic_error(fmt::format("killfile of run '{}': its text does not read back", id));
  }
  return text;
}

Killfile parse(std::string_view text, const std::string& name) {
  const StrictTable table = StrictTable::parse(text, name);
  if (const auto format = table.integer("format"); format && *format != kFormat) {
    table.refuse("format", fmt::format("is {}, and this dtool reads {}\n"
                                       "hint: the run was started by another version of dtool",
                                       *format, kFormat));
  }
  require_known(table, known_keys());
  require_count(table, "format");
  Killfile killfile;
  read_run(table, killfile);
  killfile.kind = read_kind(table);
  killfile.nproc_per_node = require_count(table, "nproc_per_node");
  killfile.code_path = require_text(table, "code_path");
  if (table.has("coordinator")) killfile.coordinator = require_text(table, "coordinator");
  if (table.has("job")) killfile.job = require_text(table, "job");
  if (table.has("ended")) killfile.ended = require_text(table, "ended");
  if (!is_time(killfile.ended))
    table.refuse("ended",
                 fmt::format("'{}' is no time such as 2026-11-21T03:45:12Z", killfile.ended));
  killfile.ssh_config_file = require_text(table, "ssh_config_file");
  killfile.ssh_settings = read_settings(table);
  killfile.machines = read_machines(table, killfile.run_id);
  return killfile;
}

}  // namespace dtool::killfiles
