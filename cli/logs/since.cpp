// SPDX-License-Identifier: MIT
#include "cli/logs/since.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "ssh/number.h"

namespace dtool::cli {
namespace {

std::optional<std::int64_t> seconds_in(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    case 'd':
      return 86400;
    default:
      return std::nullopt;
  }
}

std::optional<std::time_t> parse_time(std::string text, std::time_t now) {
  const bool is_utc = text.ends_with('Z');
  if (is_utc) text.pop_back();
  constexpr std::array kForms = {
      "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M",
      "%Y-%m-%d",          "%H:%M:%S",          "%H:%M"};
  for (const char* form : kForms) {
    std::tm time{};
    if (form[1] == 'H') {
      if (is_utc) {
        ::gmtime_r(&now, &time);
      } else {
        ::localtime_r(&now, &time);
      }
      time.tm_sec = 0;
    }
    const char* end = ::strptime(text.c_str(), form, &time);
    if (end == nullptr || *end != '\0') continue;
    const std::tm meant = time;
    time.tm_isdst = -1;
    const std::time_t found = is_utc ? ::timegm(&time) : std::mktime(&time);
    // There is no 31st of November.
    if (found == -1 || time.tm_mday != meant.tm_mday) return std::nullopt;
    return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::chrono::seconds> parse_since(const std::string& text, std::time_t now) {
  constexpr std::int64_t kMost = 1'000'000'000;  // some thirty years
  if (text.empty()) return std::nullopt;
  if (const auto unit = seconds_in(text.back())) {
    const auto count = ssh::read_number<std::uint32_t>(text.substr(0, text.size() - 1));
    if (!count || *count * *unit > kMost) return std::nullopt;
    return std::chrono::seconds(*count * *unit);
  }
  const auto time = parse_time(text, now);
  if (!time || *time > now || now - *time > kMost) return std::nullopt;
  return std::chrono::seconds(now - *time);
}

std::string must_be_since(const std::string& text) {
  if (parse_since(text, std::time(nullptr))) return "";
  return fmt::format(
      "'{}' is neither a length of time (30s, 10m, 2h, 3d) nor a time in the past "
      "(2026-11-25T14:30, 14:30, with Z for UTC)",
      text);
}

}  // namespace dtool::cli
