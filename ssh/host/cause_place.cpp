// SPDX-License-Identifier: MIT
#include "ssh/host/cause_place.h"

#include "ssh/wire/words.h"

namespace dtool::host {

std::string to_line(const CausePlace& place) {
  return std::to_string(place.machine) + (place.rank ? " " + std::to_string(*place.rank) : "");
}

std::optional<CausePlace> parse_cause_place(std::string_view line) {
  const auto machine = parse_number<int>(cut_word(line));
  if (!machine || *machine < 0) return std::nullopt;
  const auto rank = parse_number<int>(cut_word(line));
  return CausePlace{*machine, rank && *rank >= 0 ? rank : std::nullopt};
}

}  // namespace dtool::host
