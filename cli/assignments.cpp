// SPDX-License-Identifier: MIT
#include "cli/assignments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "ssh/quote.h"

namespace dtool::cli {
namespace {

/// So many equal values in a row are shorter as a loop: what every one of a thousand hosts is told
/// of each of the thousand is a million words.
constexpr std::ptrdiff_t kWorthALoop = 16;

}  // namespace

bool is_variable_name(std::string_view name) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
  constexpr std::string_view kDigits = "0123456789";
  if (name.empty() || kDigits.find(name.front()) != std::string_view::npos) return false;
  return name.find_first_not_of(fmt::format("{}{}", kLetters, kDigits)) == std::string_view::npos;
}

std::string assign(std::string_view name, std::string_view value) {
  return fmt::format("{}={}\n", name, ssh::quote(value));
}

std::string assign_path(std::string_view name, std::string_view path) {
  return fmt::format("{}={}\n", name, path.empty() ? "''" : ssh::quote_path(path));
}

std::string assign_array(std::string_view name, const std::vector<std::string>& values) {
  std::string text = fmt::format("{}=()\n", name);
  std::vector<std::string> few;  // the values that stand one by one
  const auto add_few = [&] {
    if (!few.empty()) text += fmt::format("{}+=({})\n", name, ssh::quote_all(few));
    few.clear();
  };
  for (auto first = values.begin(); first != values.end();) {
    const auto end =
        std::find_if(first, values.end(), [first](const auto& each) { return each != *first; });
    if (end - first < kWorthALoop) {
      few.insert(few.end(), first, end);
    } else {
      add_few();
      text += fmt::format("for _ in {{1..{}}}; do {}+=({}); done\n", end - first, name,
                          ssh::quote(*first));
    }
    first = end;
  }
  if (few.size() == values.size()) return fmt::format("{}=({})\n", name, ssh::quote_all(values));
  add_few();
  return text;
}

}  // namespace dtool::cli
