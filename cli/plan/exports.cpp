// SPDX-License-Identifier: MIT
#include "cli/plan/exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <ranges>
#include <set>
#include <stdexcept>
#include <system_error>

#include "cli/action.h"
#include "cli/assignments.h"
#include "killfiles/nearest.h"
#include "killfiles/whole_file.h"
#include "ssh/number.h"

namespace dtool::cli {
namespace {

constexpr std::string_view kFlag = "--export";
constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

/// A process's place in the run (torchrun's names) is dtool's to say.
bool is_dtools_own(std::string_view name) {
  constexpr std::array<std::string_view, 12> kPlace = {
      "RANK",       "LOCAL_RANK",       "WORLD_SIZE",  "LOCAL_WORLD_SIZE",
      "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",   "ROLE_WORLD_SIZE",
      "NODE_RANK",  "MASTER_ADDR",      "MASTER_PORT", "TORCHELASTIC_RUN_ID",
  };
  return (name.starts_with("DTOOL_") && name != "DTOOL_MNIST_DIR") ||
         std::ranges::find(kPlace, name) != kPlace.end();
}

/// Without the quotes around it; nothing if there is one of two.
std::optional<std::string_view> unquoted(std::string_view value) {
  if (value.empty() || (value.front() != '\'' && value.front() != '"')) return value;
  if (value.size() < 2 || value.back() != value.front()) return std::nullopt;
  return value.substr(1, value.size() - 2);
}

/// Messages about a fault in a line do not show its value.
Variable parse_line(std::string_view line, const std::string& place) {
  const std::size_t equals = line.find('=');
  if (equals == line.npos) throw UsageError(fmt::format("{}: the line is no NAME=VALUE", place));
  std::string_view before = trimmed(line.substr(0, equals));
  constexpr std::string_view kShell = "export ";  // in files that shells read, too
  if (before.starts_with(kShell)) before = trimmed(before.substr(kShell.size()));
  const std::string name(before);
  if (!is_variable_name(name))
    throw UsageError(fmt::format("{}: there is no variable name before the =", place));
  if (is_dtools_own(name))
    throw UsageError(fmt::format("{}: {} is dtool's own to set", place, name));
  const auto value = unquoted(trimmed(line.substr(equals + 1)));
  if (!value)
    throw UsageError(fmt::format("{}: the value of {} begins with a quote and does not end with it",
                                 place, name));
  if (value->find('\0') != value->npos)
    throw UsageError(fmt::format("{}: the value of {} holds a NUL character", place, name));
  return {name, std::string(*value)};
}

/// `GPU-` or `MIG-`; empty: a number.
std::string_view kind_of_gpu(std::string_view entry) {
  return entry.find('-') == entry.npos ? "" : entry.substr(0, 4);
}

}  // namespace

Variable parse_export(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (!is_variable_name(name)) {
    throw UsageError(
        fmt::format("--export: {} is not the name of a variable", name.empty() ? "''" : name));
  }
  if (is_dtools_own(name)) {
    throw UsageError(fmt::format("--export: {} is dtool's own to set", name));
  }
  if (equals != text.npos) return {name, text.substr(equals + 1)};
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) {
    throw UsageError(fmt::format("--export: {} is not set here", name),
                     fmt::format("give it a value: --export {}=…", name));
  }
  return {name, value};
}

std::vector<Variable> parse_env_file(std::string_view text, const std::string& name) {
  std::vector<Variable> variables;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    variables.push_back(parse_line(line, fmt::format("{}:{}", name, number)));
  }
  return variables;
}

Variable parse_gpus(const std::string& list) {
  std::set<std::string> seen;
  std::string first;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::string gpu = list.substr(at, comma - at);
    const auto number = ssh::read_number<std::uint16_t>(gpu);
    const bool is_uuid = (gpu.starts_with("GPU-") || gpu.starts_with("MIG-")) && gpu.size() > 4 &&
                         gpu.find_first_not_of("0123456789abcdefABCDEFGMIPU-/") == gpu.npos;
    if ((!number || *number >= 1024) && !is_uuid)
      throw UsageError(fmt::format("--gpus: {} names no GPU", gpu.empty() ? "an empty entry" : gpu),
                       "a list of numbers or UUIDs as nvidia-smi -L shows them, such as 0,2");
    if (first.empty()) first = gpu;
    if (kind_of_gpu(gpu) != kind_of_gpu(first))
      throw UsageError(fmt::format("--gpus: {} is not of the kind of {}", gpu, first),
                       "CUDA ends a list where the kind changes: give numbers, or UUIDs of GPUs, "
                       "or a MIG instance");
    if (!seen.insert(number ? std::to_string(*number) : gpu).second)
      throw UsageError(fmt::format("--gpus names {} twice", gpu));
    at = comma + 1;
  }
  return {"CUDA_VISIBLE_DEVICES", list};
}

std::optional<std::string> find_variable(const std::vector<Variable>& variables,
                                         std::string_view name) {
  for (const auto& [each, value] : std::views::reverse(variables)) {
    if (each == name) return value;
  }
  return std::nullopt;
}

std::vector<Variable> read_env_file(const std::string& file) {
  std::error_code unseen;
  if (!std::filesystem::exists(file, unseen))
    throw UsageError(fmt::format("--env_file: there is no file {}", file),
                     killfiles::nearest_file(file));
  try {
    return parse_env_file(killfiles::read_whole(file), file);
  } catch (const std::system_error& fault) {
    throw UsageError(fmt::format("--env_file: {}", fault.what()));
  }
}

std::vector<std::string> without_values(std::vector<std::string> command_line) {
  bool is_value = false;
  for (std::string& word : command_line) {
    if (word == "--") break;  // the program's own words
    std::size_t name = is_value ? 0 : word.npos;
    if (!is_value && word.starts_with(kFlag) && word.substr(kFlag.size()).starts_with('='))
      name = kFlag.size() + 1;
    is_value = !is_value && word == kFlag;
    const std::size_t equals = name == word.npos ? word.npos : word.find('=', name);
    if (equals != word.npos) word = word.substr(0, equals + 1).append(kHiddenValue);
  }
  return command_line;
}

std::vector<Variable> without_values(std::vector<Variable> variables) {
  for (Variable& each : variables) each.second = kHiddenValue;
  return variables;
}

}  // namespace dtool::cli
