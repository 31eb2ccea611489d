// SPDX-License-Identifier: MIT
#include "ssh/host/session/supervision.h"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>

#include "ssh/host/files.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

constexpr int kMostPlaces = 1'000'000;
constexpr int kMostRestarts = 1000;
constexpr int kLongestSilence = 1'000'000;

[[noreturn]] void refuse(const std::string& why) {
  throw std::runtime_error("the file supervise is not as dtool writes it: " + why);
}

int read_number(std::string_view name, std::string_view value, int least, int most) {
  const auto number = parse_number<int>(value);
  if (!number || *number < least || *number > most)
    refuse(std::string(name) + " is '" + std::string(value) + "'");
  return *number;
}

void read_coordinator(std::string_view value, Supervision& supervision) {
  const std::string whole(value);
  supervision.address = cut_word(value);
  const auto port = parse_number<std::uint16_t>(cut_word(value));
  if (supervision.address.empty() || !port || *port == 0 || !value.empty())
    refuse("coordinator is '" + whole + "'");
  supervision.port = *port;
}

/// Whether there is such a name.
bool read_value(std::string_view name, std::string_view value, Supervision& supervision) {
  if (name == "place") {
    supervision.place = read_number(name, value, 0, kMostPlaces - 1);
  } else if (name == "host") {
    supervision.host = value;
  } else if (name == "places") {
    supervision.places = read_number(name, value, 1, kMostPlaces);
  } else if (name == "max_restarts") {
    supervision.max_restarts = read_number(name, value, 0, kMostRestarts);
  } else if (name == "lost_after") {
    supervision.lost_after = std::chrono::seconds(read_number(name, value, 1, kLongestSilence));
  } else if (name == "ends_with") {
    supervision.ends_with = read_number(name, value, 0, kMostPlaces - 1);
  } else if (name == "coordinator") {
    read_coordinator(value, supervision);
  } else if (name == "machine") {
    supervision.hosts.emplace_back(value);
  } else {
    return false;
  }
  return true;
}

void check(const Supervision& supervision, const std::set<std::string, std::less<>>& seen) {
  for (const char* name : {"place", "host", "places", "max_restarts", "lost_after"}) {
    if (!seen.contains(name)) refuse(std::string(name) + " is missing");
  }
  if (supervision.place >= supervision.places) refuse("place is not below places");
  if (supervision.ends_with && *supervision.ends_with >= supervision.places)
    refuse("ends_with is not below places");
  if ((supervision.places > 1) != seen.contains("coordinator"))
    refuse(supervision.places > 1 ? "coordinator is missing" : "coordinator is one too many");
  const std::size_t names =
      supervision.place == 0 ? static_cast<std::size_t>(supervision.places) : 0;
  if (supervision.hosts.size() != names)
    refuse("it names " + std::to_string(supervision.hosts.size()) + " machines instead of " +
           std::to_string(names));
}

}  // namespace

std::chrono::milliseconds time_between_signs(const Supervision& supervision) {
  using std::chrono::milliseconds;
  return std::min(milliseconds(2000 + 10 * supervision.places),
                  milliseconds(supervision.lost_after) / 6);
}

std::string to_text(const Supervision& supervision) {
  std::string text;
  const auto line = [&text](std::string_view name, std::string_view value) {
    text.append(name).append(" ").append(value).append("\n");
  };
  line("place", std::to_string(supervision.place));
  line("host", supervision.host);
  line("places", std::to_string(supervision.places));
  line("max_restarts", std::to_string(supervision.max_restarts));
  line("lost_after", std::to_string(supervision.lost_after.count()));
  if (supervision.places > 1)
    line("coordinator", supervision.address + " " + std::to_string(supervision.port));
  if (supervision.ends_with) line("ends_with", std::to_string(*supervision.ends_with));
  for (const std::string& host : supervision.hosts) line("machine", host);
  return text;
}

Supervision parse_supervision(std::string_view text) {
  Supervision supervision;
  std::set<std::string, std::less<>> seen;
  if (!text.empty() && text.back() != '\n') refuse("its last line has no end");
  while (!text.empty()) {
    const std::string_view line = cut_line(text);
    const std::size_t blank = line.find(' ');
    const std::string name(line.substr(0, blank));
    if (blank == line.npos || blank + 1 == line.size()) refuse("'" + name + "' has no value");
    if (!read_value(name, line.substr(blank + 1), supervision))
      refuse("'" + name + "' is no name that dtool-host knows");
    if (!seen.insert(name).second && name != "machine") refuse("'" + name + "' is there twice");
  }
  check(supervision, seen);
  return supervision;
}

std::optional<std::string> read_token() {
  const std::string token = read_line("token");
  const bool is_one = token.size() >= 32 && token.size() <= 64 &&
                      token.find_first_not_of("0123456789abcdef") == token.npos;
  return is_one ? std::optional(token) : std::nullopt;
}

}  // namespace dtool::host
