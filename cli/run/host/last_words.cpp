// SPDX-License-Identifier: MIT
#include "cli/run/host/last_words.h"

#include <string.h>

#include "ssh/host/files.h"
#include "ssh/host/words.h"

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
  if (end.words.empty()) return Meaning::failure;
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
  return text;
}

std::string before_last_line(int code) {
  const bool ended_by_signal = code > 128 && code <= 128 + 64;
  return ended_by_signal ? "; its last line: " : ": ";
}

}  // namespace dtool::host
