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

template <typename Number>
void require_range(Number number, Number last, const char* what) {
  if (number < Number{} || number > last) throw BadMessage(std::string(what) + " is out of range");
}

void require_rank(const std::optional<int>& rank) {
  if (rank) require_range(*rank, kLastRank, "a rank");
}

void require_plain(const std::string& text) {
  if (text.size() > kLongestText) throw BadMessage("a text is too long");
  if (!std::ranges::all_of(text, is_printable)) throw BadMessage("a text is not printable");
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
  Report plain = report;
  plain.text = in_ascii(report.text);
  return encode(plain);
}

std::string to_bytes(const Answer& answer) {
  Answer plain = answer;
  if (plain.decision) plain.decision->text = in_ascii(plain.decision->text);
  return encode(plain);
}

Report parse_report(std::string_view bytes) {
  auto report = decode<Report>(bytes);
  require_range(report.attempt, kLastAttempt, "an attempt");
  require_range(report.standing, Standing::gone, "a standing");
  require_range(report.code, kLastCode, "an exit code");
  require_plain(report.text);
  require_rank(report.rank);
  return report;
}

Answer parse_answer(std::string_view bytes, int places) {
  auto answer = decode<Answer>(bytes);
  if (!answer.decision) return answer;
  const Decision& decision = *answer.decision;
  require_range(decision.attempt, kLastAttempt, "an attempt");
  require_range(decision.verb, Verb::finish, "a verb");
  require_plain(decision.text);
  for (const int place : decision.places) require_range(place, places - 1, "a place");
  if (decision.cause_place) {
    require_range(decision.cause_place->machine, places - 1, "a place");
    require_rank(decision.cause_place->rank);
  }
  return answer;
}

}  // namespace dtool::host
