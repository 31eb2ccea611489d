// SPDX-License-Identifier: MIT
// Arranges settings in columns; rank 0's worker calls it.
#include "trainer/settings/settings_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtool::trainer {

std::string settings_table(const std::vector<Setting>& settings, Shown shown) {
  std::size_t key_width = 0;
  std::size_t value_width = 0;
  std::size_t left_out = 0;
  const auto is_left_out = [shown](const Setting& each) {
    return shown == Shown::given && each.origin == Origin::by_default;
  };
  for (const Setting& each : settings) {
    if (is_left_out(each)) {
      ++left_out;
      continue;
    }
    key_width = std::max(key_width, each.key.size());
    if (each.origin == Origin::by_default) value_width = std::max(value_width, each.value.size());
  }
  std::string table;
  for (const Setting& each : settings) {
    if (is_left_out(each)) continue;
    table += each.origin == Origin::given
                 ? fmt::format("  {:<{}}  {}\n", each.key, key_width, each.value)
                 : fmt::format("  {:<{}}  {:<{}}  (default)\n", each.key, key_width, each.value,
                               value_width);
  }
  if (left_out > 0)
    table += fmt::format("  and {} default{} (dtool-trainer --verbose shows all)\n", left_out,
                         left_out == 1 ? "" : "s");
  return table;
}

}  // namespace dtool::trainer
