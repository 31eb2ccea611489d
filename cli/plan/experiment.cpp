// SPDX-License-Identifier: MIT
#include "cli/plan/experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <toml++/toml.h>

#include "cli/action.h"
#include "cli/command_line.h"
#include "cli/console.h"
#include "killfiles/nearest.h"
#include "killfiles/strict_toml.h"
#include "killfiles/whole_file.h"
#include "ssh/quote.h"
#include "trainer/experiments/shipped.h"

namespace dtool::cli {
namespace {

using Json = nlohmann::json;

/// The command line that runs a file which is no experiment; empty: its name does not tell.
std::string program_of(const std::filesystem::path& file) {
  if (file.extension() == ".py") return "python3 " + file.string();
  if (file.extension() == ".sh") return "bash " + file.string();
  return {};
}

/// toml++ 3.3 writes a line end, a tab or an apostrophe in a key as it is, and cannot read such a
/// key back, or reads another one.
void refuse_unwritable(std::string_view key, const std::string& source) {
  const auto is_unwritable = [](unsigned char each) {
    return each < ' ' || each == 0x7f || each == '\'';
  };
  const auto found = std::ranges::find_if(key, is_unwritable);
  if (found == key.end()) return;
  throw UsageError(fmt::format("{}: the key '{}' has {}", source, printable(key, Allowed::nothing),
                               *found == '\'' ? "an apostrophe" : "a control character"),
                   "a key is one line of printable characters without apostrophes");
}

void refuse_unwritable_in(const toml::node& node, const std::string& source) {
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table) {
      refuse_unwritable(key.str(), source);
      refuse_unwritable_in(value, source);
    }
  } else if (const toml::array* array = node.as_array()) {
    for (const toml::node& each : *array) refuse_unwritable_in(each, source);
  }
}

toml::table parse_toml(const std::string& text, const std::filesystem::path& file) {
  try {
    killfiles::StrictTable::parse(text, file.string());
  } catch (const std::invalid_argument& fault) {
    const bool is_named_toml = file.extension() == ".toml";
    if (is_named_toml) throw UsageError(fault.what());
    if (const std::string program = program_of(file); !program.empty()) {
      throw UsageError(file.string() + " is a program, and an experiment is a TOML file",
                       "a program goes after --: dtool run -- " + program);
    }
    const std::string_view sentence = fault.what();
    throw UsageError(std::string(sentence.substr(0, sentence.find("\nhint: "))),
                     "an experiment is a TOML file; a program goes after --: dtool run -- PROGRAM");
  }
  toml::table table = toml::parse(text);
  refuse_unwritable_in(table, file.string());
  return table;
}

/// Refuses deeply nested values: recursive functions walk through them.
bool refuse_depth(int depth, Json::parse_event_t, const Json&) {
  constexpr int kDeepest = 64;
  if (depth <= kDeepest) return true;
  throw UsageError(fmt::format("--config_kwargs: it is nested more than {} deep", kDeepest));
}

Json parse_json(const std::string& text) {
  if (text.empty()) return Json::object();
  try {
    Json json = Json::parse(text, refuse_depth);
    if (!json.is_object()) {
      throw UsageError(fmt::format("--config_kwargs wants a JSON object, not {}", text),
                       R"(for example --config_kwargs '{"train":{"epochs":3}}')");
    }
    return json;
  } catch (const Json::exception& error) {
    const std::string what =
        error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 9: …"
    const std::size_t at = what.find("] ");
    if (const std::string meant = config_kwargs_of({text}); !meant.empty())
      throw UsageError(fmt::format("--config_kwargs wants a JSON object, not {}", text), meant);
    throw UsageError(
        fmt::format("--config_kwargs: {}", at == what.npos ? what : what.substr(at + 2)),
        R"(quote it for the shell, for example --config_kwargs '{"train":{"epochs":3}}')");
  }
}

void merge(toml::table& table, const Json& json, const std::string& path);

/// Where a value goes: into an array's end, or under a table's key.
struct TomlSlot {
  toml::array* array = nullptr;
  toml::table* table = nullptr;
  std::string key = {};

  template <typename Value>
  void put(const Value& value) const {
    if (array != nullptr) {
      array->push_back(value);
    } else {
      table->insert_or_assign(key, value);
    }
  }
};

void put(const TomlSlot& slot, const Json& value, const std::string& path) {
  if (value.is_boolean()) {
    slot.put(value.get<bool>());
  } else if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
    throw UsageError(fmt::format("--config_kwargs: {} is {}, and TOML's integers end at {}", path,
                                 value.get<std::uint64_t>(),
                                 std::numeric_limits<std::int64_t>::max()));
  } else if (value.is_number_integer()) {
    slot.put(value.get<std::int64_t>());
  } else if (value.is_number_float()) {
    slot.put(value.get<double>());
  } else if (value.is_string()) {
    slot.put(value.get<std::string>());
  } else if (value.is_array()) {
    toml::array array;
    for (const Json& each : value) put({&array, nullptr}, each, path);
    slot.put(array);
  } else if (value.is_object()) {
    toml::table table;
    merge(table, value, path);
    slot.put(table);
  } else {
    throw UsageError(fmt::format("--config_kwargs: {} is null, which TOML cannot hold", path));
  }
}

/// `{"train":{"epochs":3}}` of `train.epochs`.
Json nested(const std::string& dotted, const Json& value) {
  const std::size_t dot = dotted.find('.');
  if (dot == dotted.npos) return {{dotted, value}};
  return {{dotted.substr(0, dot), nested(dotted.substr(dot + 1), value)}};
}

/// Tables are merged key by key; everything else is replaced.
void merge(toml::table& table, const Json& json, const std::string& path) {
  for (const auto& [key, value] : json.items()) {
    const std::string here = path.empty() ? key : path + "." + key;
    refuse_unwritable(here, "--config_kwargs");
    const std::size_t dot = key.find('.');
    if (dot != key.npos && !table.contains(key) && table[key.substr(0, dot)].is_table())
      throw UsageError(fmt::format("--config_kwargs: there is no key '{}'", key),
                       fmt::format("a setting of the table {} is written as {}", key.substr(0, dot),
                                   nested(key, value).dump()));
    toml::table* inner = table[key].as_table();
    if (inner != nullptr && value.is_object()) {
      merge(*inner, value, here);
    } else if (inner != nullptr) {
      throw UsageError(fmt::format("--config_kwargs: {} is a table in the experiment, not {}", here,
                                   value.dump()));
    } else {
      put({nullptr, &table, key}, value, here);
    }
  }
}

UsageError no_experiment(const std::string& file) {
  std::vector<std::string> known = shipped_experiments();
  const std::string all = fmt::format("{}", fmt::join(known, ", "));
  std::error_code unseen;
  for (const auto& each : std::filesystem::directory_iterator(".", unseen)) {
    if (each.path().extension() == ".toml") known.push_back(each.path().filename());
  }
  auto meant = killfiles::nearest(file, known);
  if (!meant) meant = killfiles::nearest(std::filesystem::path(file).stem().string(), known);
  if (!meant && file.find(' ') != file.npos)
    return UsageError(fmt::format("there is no experiment {}", ssh::quote(file)),
                      "a program goes after --: dtool run -- " + file);
  return UsageError(
      fmt::format("there is no experiment {}: no such file, and none of that name comes with dtool",
                  file),
      meant ? fmt::format("did you mean '{}'?", *meant) : "these come with dtool: " + all);
}

void check_nodes(std::int64_t nodes, int machines, std::string_view source) {
  if (nodes == machines) return;
  throw UsageError(fmt::format("distributed_nodes is {} in {}, but the run has {}", nodes, source,
                               counted(static_cast<std::size_t>(machines), "machine")),
                   "name as many hosts, or leave distributed_nodes out");
}

void check_kwargs_nodes(const Json& json, int machines) {
  const auto nodes = json.find("distributed_nodes");
  if (nodes == json.end()) return;
  if (!nodes->is_number_integer()) {
    throw UsageError(fmt::format("--config_kwargs: distributed_nodes wants a whole number, not {}",
                                 nodes->dump()));
  }
  check_nodes(nodes->get<std::int64_t>(), machines, "--config_kwargs");
}

std::string text_of(const toml::table& table) {
  // toml++ 3.3 cannot read back the control characters that it writes into literal strings, nor the
  // line end with which a multi-line string of its begins.
  constexpr auto kFlags =
      toml::toml_formatter::default_flags &
      ~(toml::format_flags::allow_literal_strings | toml::format_flags::allow_multi_line_strings);
  std::ostringstream text;
  text << toml::toml_formatter(table, kFlags) << "\n";
  return text.str();
}

/// What a checkpoint depends on. With another learning rate, another length or
/// other batches a training goes on.
constexpr std::array<std::string_view, 16> kOfCheckpoint = {
    "workload",          "model.hidden",   "model.layers",    "model.embedding",
    "model.file",        "optimizer.kind", "data.source",     "data.train_samples",
    "data.drawing_seed", "data.features",  "data.train_file", "data.test_share",
    "data.split_seed",   "data.targets",   "data.inputs",     "data.train_images"};

void refuse_change(const toml::table& before, const toml::table& now, std::string_view key) {
  const auto text = [key](const toml::table& table) {
    std::ostringstream written;
    if (const auto value = table.at_path(key)) written << value;
    return written.str();
  };
  if (text(before) == text(now)) return;
  throw UsageError(
      fmt::format("--config_kwargs changes {}, and a checkpoint belongs to the one that "
                  "it was written with",
                  key),
      "start a run of its own");
}

}  // namespace

bool is_experiment(const std::string& name) {
  std::error_code unseen;
  const std::vector<std::string> shipped = shipped_experiments();
  return std::filesystem::exists(name, unseen) || std::ranges::count(shipped, name) > 0;
}

std::vector<std::string> shipped_experiments() {
  std::vector<std::string> names;
  for (const auto& [name, text] : trainer::experiments::kAll) names.emplace_back(name);
  return names;
}

ExperimentText read_experiment(const std::string& file, const std::string& config_kwargs,
                               int machines) {
  const Json kwargs = parse_json(config_kwargs);
  check_kwargs_nodes(kwargs, machines);
  ExperimentText experiment;
  const std::filesystem::path path = file;
  std::string text_of_file;
  if (std::filesystem::is_regular_file(path)) {
    try {
      text_of_file = killfiles::read_whole(path);
    } catch (const std::system_error& fault) {
      throw UsageError(fault.what());
    }
  } else {
    const auto* const shipped = std::ranges::find(trainer::experiments::kAll, file,
                                                  [](const auto& each) { return each.first; });
    if (shipped == std::end(trainer::experiments::kAll)) {
      throw no_experiment(file);
    }
    text_of_file = shipped->second;
    experiment.is_shipped = true;
  }
  experiment.name = path.stem();
  toml::table table = parse_toml(text_of_file, path);
  merge(table, kwargs, "");
  if (const auto nodes = table["distributed_nodes"].value<std::int64_t>())
    check_nodes(*nodes, machines, path.string());
  experiment.toml = text_of(table);
  return experiment;
}

ExperimentText repeated_experiment(const std::string& name, const std::string& toml,
                                   const std::string& config_kwargs, int machines) {
  const Json kwargs = parse_json(config_kwargs);
  check_kwargs_nodes(kwargs, machines);
  toml::table table = parse_toml(toml, name + ".toml");
  merge(table, kwargs, "");
  if (table.contains("distributed_nodes"))
    table.insert_or_assign("distributed_nodes", std::int64_t{machines});
  return {name, text_of(table)};
}

ExperimentText resumed_experiment(const std::string& name, const std::string& toml,
                                  const std::string& config_kwargs, int machines) {
  ExperimentText changed = repeated_experiment(name, toml, config_kwargs, machines);
  const toml::table earlier = parse_toml(toml, name + ".toml");
  const toml::table now = parse_toml(changed.toml, name + ".toml");
  for (const std::string_view key : kOfCheckpoint) refuse_change(earlier, now, key);
  return changed;
}

void check_config_kwargs(const std::string& config_kwargs, int machines) {
  const Json kwargs = parse_json(config_kwargs);
  check_kwargs_nodes(kwargs, machines);
  for (const auto& [key, value] : kwargs.items()) {
    if (key == "distributed_nodes") continue;
    throw UsageError(fmt::format("--config_kwargs: there is no experiment to put {} into", key),
                     "name the experiment before --, or give the setting to the program itself");
  }
}

}  // namespace dtool::cli
