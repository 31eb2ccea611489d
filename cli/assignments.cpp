#include "cli/assignments.h"

#include <fmt/format.h>

#include "ssh/quote.h"

namespace dtool::cli {

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
  return fmt::format("{}=({})\n", name, ssh::quote_all(values));
}

}  // namespace dtool::cli
