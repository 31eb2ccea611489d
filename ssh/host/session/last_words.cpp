// SPDX-License-Identifier: MIT
#include "ssh/host/session/last_words.h"

#include <string.h>

#include "ssh/host/child.h"
#include "ssh/host/explaining_line.h"
#include "ssh/host/files.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

// With words.
constexpr int kMistake = 2;
constexpr int kOthersFailed = 3;
constexpr int kAllSayTheSame = 4;

constexpr std::size_t kLongestWords = 2000;

std::string how_it_ended(int code) {
  // ::sigabbrev_np() says `KILL` where strsignal() says `Killed`.
  const char* signal = code > 128 ? ::sigabbrev_np(code - 128) : nullptr;
  if (signal == nullptr) return "ended with exit code " + std::to_string(code);
  return "was killed by signal " + std::to_string(code - 128) + " (" + signal + ")";
}

}  // namespace

std::string last_words_file(int attempt, int rank) {
  return "last_words." + std::to_string(attempt) + "." + std::to_string(rank);
}

std::string read_last_words(const std::string& path) {
  constexpr std::string_view kHint = "hint: ";
  const std::string text = read_file(path, kLongestWords).value_or("");
  std::string_view rest = text;
  std::string words(cut_line(rest));
  const std::string_view hint = cut_line(rest);
  if (hint.starts_with(kHint)) words.append(" (").append(hint).append(")");
  return words;
}

Meaning meaning_of(const RankEnd& end) {
  // Being killed does not follow from others' failures.
  if (end.words.empty())
    return end.code != kKilled && marks_a_victim(end.last) ? Meaning::aftermath : Meaning::failure;
  if (end.code == kMistake) return Meaning::mistake;
  return end.code == kOthersFailed ? Meaning::aftermath : Meaning::failure;
}

std::string describe(const RankEnd& end, const std::string& detail) {
  const bool have_words = !end.words.empty();
  if (have_words && (end.code == kOthersFailed || end.code == kAllSayTheSame)) return end.words;
  std::string text = end.who + " " + how_it_ended(end.code);
  for (const std::string* part : {&detail, &end.words}) {
    if (!part->empty()) text.append(": ").append(*part);
  }
  // What it printed before a signal ended it need not be the reason.
  const bool ended_by_signal = end.code > 128 && end.code <= 128 + 64;
  if (!have_words && !end.last.empty())
    text.append(ended_by_signal ? "; its last line: " : ": ").append(end.last);
  return text;
}

}  // namespace dtool::host
