// SPDX-License-Identifier: MIT
#include "cli/record/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>

#include "killfiles/strict_toml.h"
#include "sync/listing.h"

namespace dtool::cli {
namespace {

using Words = std::map<std::string, std::string>;

void flatten(const toml::node& node, const std::string& name, Words& words) {
  if (const toml::table* table = node.as_table(); table != nullptr) {
    for (const auto& [key, value] : *table)
      flatten(value, (name.empty() ? "" : name + ".") + std::string(key.str()), words);
    return;
  }
  const toml::array* array = node.as_array();
  const bool has_tables =
      array != nullptr && !array->empty() && array->is_homogeneous<toml::table>();
  if (has_tables) {
    std::size_t place = 0;
    for (const toml::node& each : *array)
      flatten(each, fmt::format("{}[{}]", name, place++), words);
    return;
  }
  std::ostringstream text;
  node.visit([&text](const auto& value) { text << value; });
  words[name] = text.str();
}

/// Those that differ, and with `Same::too` also the others, in the order of their names.
enum class Same { left_out, too };
std::vector<Difference> differences(const Words& before, const Words& now,
                                    Same same = Same::left_out) {
  std::set<std::string> names;
  for (const auto& [name, value] : before) names.insert(name);
  for (const auto& [name, value] : now) names.insert(name);
  std::vector<Difference> found;
  for (const std::string& name : names) {
    const auto a = before.find(name);
    const auto b = now.find(name);
    Difference each{name, a == before.end() ? "" : a->second, b == now.end() ? "" : b->second};
    if (each.before != each.now || same == Same::too) found.push_back(std::move(each));
  }
  return found;
}

/// `other` is compared with it.
Words settings_of(const RunRecord& record, const RunRecord& other) {
  Words words = record.experiment.empty() ? Words() : flatten_toml(record.experiment);
  const auto add = [&words](const std::string& name, const std::string& value) {
    if (!value.empty()) words[name] = value;
  };
  add("what", record.what);
  if (!record.program.empty()) add("program", fmt::format("{}", fmt::join(record.program, " ")));
  for (const auto& [row, value, usual] : killfiles::tell(record)) {
    if (row.is_compared && *row.shown != '\0') add(row.shown, value.empty() ? usual : value);
  }
  for (const auto& [name, value] : record.environment.items())
    add("environment: " + name, value.is_string() ? value.get<std::string>() : value.dump());
  for (const auto& [name, value] : record.simulator.items())
    if (value.is_string()) add("simulator: " + name, value.get<std::string>());
  if (!record.variables.empty())
    add("exported", fmt::format("{}", fmt::join(record.variables, " ")));
  add("machines", std::to_string(record.machines.size()));
  add("dtool", record.dtool_version);
  if (record.packages.empty() != other.packages.empty()) {
    add("packages", record.packages.empty() ? "not known" : "known");
    return words;
  }
  std::string python = record.packages.substr(0, record.packages.find('\n'));
  add("python", python);
  std::istringstream packages(record.packages);
  std::getline(packages, python);
  for (std::string line; std::getline(packages, line);) {
    const std::size_t equals = line.find("==");
    if (equals != line.npos) add("package " + line.substr(0, equals), line.substr(equals + 2));
  }
  return words;
}

Words hosts_of(const RunRecord& record) {
  Words words;
  for (const RecordedMachine& each : record.machines) {
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) words[fmt::format("machine {} {}", each.id, name)] = value;
    };
    add("host", each.host);
    add("name", each.identity.name);
    if (each.processes > 0) add("processes", std::to_string(each.processes));
    if (each.cores > 0) add("cores", std::to_string(each.cores));
    if (each.memory > 0)
      add("memory", fmt::format("{:.1f} GiB", static_cast<double>(each.memory) / (1 << 30)));
    add("GPUs", fmt::format("{}", fmt::join(each.gpus, "; ")));
    add("driver", each.driver);
    add("trainer", each.trainer);
  }
  return words;
}

}  // namespace

std::string metric_text(const nlohmann::json& value) {
  if (!value.is_number_float()) return value.dump();
  const auto exact = value.get<double>();
  const auto rounded = static_cast<float>(exact);
  return static_cast<double>(rounded) == exact ? fmt::format("{}", rounded)
                                               : fmt::format("{:.10g}", exact);
}

namespace {

Words metrics_of(const RunRecord& record) {
  Words words;
  if (!record.end) return words;
  for (const auto& [prefix, metrics] :
       {std::pair("", &record.end->metrics), std::pair("validation: ", &record.end->validation)}) {
    for (const auto& [name, value] : metrics->items()) {
      if (value.is_number() && name != "time") words[prefix + name] = metric_text(value);
    }
  }
  return words;
}

/// Each file with a word for its content; the time of its last change only where nothing else is
/// known.
Words files_of_listing(const std::string& text) {
  const tree_sync::Listing listing = tree_sync::make_listing(text);
  Words words;
  for (const tree_sync::Entry& each : listing.entries) {
    if (each.is_folder()) continue;
    words[std::string(each.name)] = std::string(each.content.empty() ? each.facts : each.content);
  }
  return words;
}

void compare_files(const Words& before, const Words& now, std::vector<Difference>& code) {
  for (Difference& each : differences(before, now)) {
    if (each.before.empty()) {
      each.now = "added";
    } else if (each.now.empty()) {
      each.before = "there";
      each.now = "gone";
    } else {
      each.before = "there";
      each.now = "changed";
    }
    code.push_back(std::move(each));
  }
}

}  // namespace

std::map<std::string, std::string> flatten_toml(std::string_view text) {
  Words words;
  killfiles::require_shallow(text, "the experiment");
  try {
    flatten(toml::parse(text), "", words);
  } catch (const toml::parse_error& error) {
    throw std::invalid_argument(std::string(error.description()));
  }
  return words;
}

std::map<std::string, std::string> files_of_diff(std::string_view diff) {
  constexpr std::string_view kBegin = "diff --git ";
  Words files;
  for (std::size_t at = diff.starts_with(kBegin) ? 0 : diff.npos; at != diff.npos;) {
    const std::size_t next = diff.find("\ndiff --git ", at);
    const std::string_view part = diff.substr(at, next == diff.npos ? diff.npos : next + 1 - at);
    const std::string_view line = part.substr(0, part.find('\n'));
    // `a/NAME b/NAME`: without renames both names are the same.
    const std::string_view names = line.substr(kBegin.size());
    const std::size_t second = names.size() / 2 + 3;
    const bool is_plain = !names.starts_with('"') && second < names.size();
    files[std::string(is_plain ? names.substr(second) : names)] = std::string(part);
    at = next == diff.npos ? diff.npos : next + 1;
  }
  return files;
}

Comparison compare_runs(const RunRecord& before, const RunRecord& now,
                        const std::optional<std::string>& before_listing,
                        const std::optional<std::string>& now_listing) {
  Comparison found;
  const auto code_words = [](const RecordedCode& code) {
    Words words;
    if (!code.commit.empty()) words["commit"] = code.commit + (code.is_dirty ? " and edits" : "");
    if (!code.branch.empty()) words["branch"] = code.branch;
    return words;
  };
  found.code = differences(code_words(before.code), code_words(now.code));
  const bool is_same_tree =
      !before.code.fingerprint.empty() && before.code.fingerprint == now.code.fingerprint;
  const bool had_code = !before.code.folder.empty() || !now.code.folder.empty();
  if (before_listing && now_listing) {
    if (!is_same_tree)
      compare_files(files_of_listing(*before_listing), files_of_listing(*now_listing), found.code);
  } else if (had_code && !is_same_tree) {
    if (before.code.commit.empty() || before.code.commit != now.code.commit) {
      found.code_note = "the files cannot be compared: there is no list of those of ";
      found.code_note += before_listing ? now.run_id : before.run_id;
    } else {
      found.code_note = "only the edits since the commit are compared";
      compare_files(files_of_diff(before.code.diff), files_of_diff(now.code.diff), found.code);
    }
  }
  found.settings = differences(settings_of(before, now), settings_of(now, before));
  found.hosts = differences(hosts_of(before), hosts_of(now));
  found.metrics = differences(metrics_of(before), metrics_of(now), Same::too);
  return found;
}

}  // namespace dtool::cli
