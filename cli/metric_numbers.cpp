// SPDX-License-Identifier: MIT
#include "cli/metric_numbers.h"

#include <limits>

namespace dtool::cli {
namespace {

using Numbers = std::vector<std::pair<std::string, double>>;

void add_numbers(const nlohmann::json& object, const std::string& prefix, int levels,
                 Numbers& numbers) {
  constexpr std::size_t kMost = 1000;
  for (const auto& [name, value] : object.items()) {
    if (numbers.size() >= kMost) return;
    if (value.is_number()) numbers.emplace_back(prefix + name, value.get<double>());
    if (value.is_null())
      numbers.emplace_back(prefix + name, std::numeric_limits<double>::quiet_NaN());
    if (value.is_object() && levels > 1)
      add_numbers(value, prefix + name + ".", levels - 1, numbers);
  }
}

}  // namespace

std::vector<std::pair<std::string, double>> metric_numbers(const nlohmann::json& object) {
  constexpr int kLevels = 8;
  Numbers numbers;
  if (object.is_object()) add_numbers(object, "", kLevels, numbers);
  return numbers;
}

std::string step_name(const nlohmann::json& object) {
  for (const char* name : {"step", "global_step", "iteration", "iter", "epoch"})
    if (object.contains(name)) return name;
  return "";
}

}  // namespace dtool::cli
