// SPDX-License-Identifier: MIT
#include "ssh/host/session/report.h"

#include <algorithm>

#include "ssh/host/process_table.h"
#include "ssh/wire/message.h"

namespace dtool::host {
namespace {

constexpr std::size_t kLongestText = 1500;
constexpr int kLastAttempt = 9999;
constexpr int kLastCode = 255;
constexpr int kLastRank = 9'999'999;

bool is_printable(char each) {
  return each >= ' ' && each <= '~';
}

/// Each as it crosses: numbers in place of the enumerations, whose range is looked at by hand.
struct WireReport {
  std::int64_t attempt = 0;
  std::uint8_t standing = 0;
  std::int64_t code = 0;
  std::string text;
  std::optional<std::int64_t> rank;

  void fields(auto visit) { visit(attempt, standing, code, text, rank); }
};

struct WireDecision {
  std::int64_t attempt = 0;
  std::uint8_t verb = 0;
  std::vector<std::int64_t> places;
  std::string text;
  std::optional<std::int64_t> cause_machine;
  std::optional<std::int64_t> cause_rank;

  void fields(auto visit) { visit(attempt, verb, places, text, cause_machine, cause_rank); }
};

struct WireAnswer {
  std::uint64_t taken = 0;
  std::optional<WireDecision> decision;

  void fields(auto visit) { visit(taken, decision); }
};

int in_range(std::int64_t number, int last, const char* what) {
  if (number < 0 || number > last) throw BadMessage(std::string(what) + " is out of range");
  return static_cast<int>(number);
}

std::optional<int> rank_in_range(std::optional<std::int64_t> rank) {
  if (!rank) return std::nullopt;
  return in_range(*rank, kLastRank, "a rank");
}

std::string checked_text(std::string text) {
  if (text.size() > kLongestText) throw BadMessage("a text is too long");
  if (!std::ranges::all_of(text, is_printable)) throw BadMessage("a text is not printable");
  return text;
}

}  // namespace

Time time_since_boot() {
  return Time(static_cast<Time::rep>(seconds_since_boot() * 1000));
}

std::string in_ascii(std::string_view text) {
  std::string plain(text.substr(0, kLongestText));
  std::ranges::replace_if(
      plain, [](char each) { return !is_printable(each); }, '?');
  return plain;
}

std::string to_bytes(const Report& report) {
  return encode(WireReport{report.attempt, static_cast<std::uint8_t>(report.standing), report.code,
                           in_ascii(report.text), report.rank});
}

std::string to_bytes(const Answer& answer) {
  WireAnswer wire{answer.taken, std::nullopt};
  if (answer.decision) {
    const Decision& decision = *answer.decision;
    wire.decision = {decision.attempt,
                     static_cast<std::uint8_t>(decision.verb),
                     {decision.places.begin(), decision.places.end()},
                     in_ascii(decision.text),
                     std::nullopt,
                     std::nullopt};
    if (decision.cause_place) {
      wire.decision->cause_machine = decision.cause_place->machine;
      wire.decision->cause_rank = decision.cause_place->rank;
    }
  }
  return encode(wire);
}

Report parse_report(std::string_view bytes) {
  const auto wire = decode<WireReport>(bytes);
  in_range(wire.standing, static_cast<int>(Standing::gone), "a standing");
  return {in_range(wire.attempt, kLastAttempt, "an attempt"), static_cast<Standing>(wire.standing),
          in_range(wire.code, kLastCode, "an exit code"), checked_text(wire.text),
          rank_in_range(wire.rank)};
}

Answer parse_answer(std::string_view bytes, int places) {
  auto wire = decode<WireAnswer>(bytes);
  Answer answer{wire.taken, std::nullopt};
  if (!wire.decision) return answer;
  in_range(wire.decision->verb, static_cast<int>(Verb::finish), "a verb");
  Decision decision{in_range(wire.decision->attempt, kLastAttempt, "an attempt"),
                    static_cast<Verb>(wire.decision->verb),
                    {},
                    checked_text(wire.decision->text),
                    std::nullopt};
  if (wire.decision->cause_rank && !wire.decision->cause_machine)
    throw BadMessage("a rank has no machine");
  if (wire.decision->cause_machine)
    decision.cause_place = {in_range(*wire.decision->cause_machine, places - 1, "a place"),
                            rank_in_range(wire.decision->cause_rank)};
  for (const std::int64_t place : wire.decision->places)
    decision.places.push_back(in_range(place, places - 1, "a place"));
  answer.decision = std::move(decision);
  return answer;
}

}  // namespace dtool::host
