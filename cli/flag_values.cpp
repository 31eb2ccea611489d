#include "cli/flag_values.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>

namespace dtool::cli {
namespace {

template <typename Number>
std::optional<Number> read_number(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

std::string must_be_seconds(const std::string& text) {
  constexpr double kLongest = 365.0 * 24 * 3600;
  const auto seconds = read_number<double>(text);
  // Written so that NaN is refused too.
  if (seconds && *seconds >= 0.001 && *seconds <= kLongest) return "";
  return fmt::format("'{}' is not a positive number of seconds", text);
}

std::string must_be_count(const std::string& text) {
  const auto count = read_number<std::uint32_t>(text);
  if (count && *count >= 1) return "";
  return fmt::format("'{}' is not a positive number", text);
}

std::string must_be_whole_number(const std::string& text) {
  return read_number<std::uint32_t>(text) ? "" : fmt::format("'{}' is not a whole number", text);
}

std::string must_not_be_empty(const std::string& text) {
  return text.empty() ? "the value is empty" : "";
}

}  // namespace dtool::cli
