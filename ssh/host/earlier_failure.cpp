// SPDX-License-Identifier: MIT
#include "ssh/host/earlier_failure.h"

#include "ssh/wire/words.h"

namespace dtool::host {

std::string to_text(const EarlierFailure& failure) {
  return std::to_string(failure.attempt) + " " + std::to_string(failure.log_bytes) +
         (failure.place ? " " + to_line(*failure.place) : "") + "\n" + failure.text;
}

std::optional<EarlierFailure> parse_earlier_failure(std::string_view text) {
  std::string_view line = cut_line(text);
  const auto attempt = parse_number<int>(cut_word(line));
  const auto log_bytes = parse_number<std::uint64_t>(cut_word(line));
  const std::string_view cause = cut_line(text);
  if (!attempt || *attempt < 0 || !log_bytes || cause.empty()) return std::nullopt;
  return EarlierFailure{*attempt, *log_bytes, parse_cause_place(line), std::string(cause)};
}

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
