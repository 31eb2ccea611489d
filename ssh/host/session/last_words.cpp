// SPDX-License-Identifier: MIT
#include "ssh/host/session/last_words.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "ssh/host/child.h"
#include "ssh/host/explaining_line.h"
#include "ssh/host/files.h"
#include "ssh/host/session/job.h"
#include "ssh/host/session/report.h"
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

namespace {

constexpr int kMistakeTold = 3;  // an exit code that no fault of this program has
constexpr std::size_t kLongestCause = 1000;

struct Failed {
  RankEnd end;
  std::string state;  ///< folder of its machine
  int place;
  int rank;
  timespec at;  ///< the time when its record was written

  /// As in Coordinator::find_cause(): the first failure is the cause, unless a process was killed.
  auto order() const {
    const bool is_aftermath = meaning_of(end) == Meaning::aftermath;
    return std::tuple(end.code != kKilled, is_aftermath, at.tv_sec, at.tv_nsec);
  }
};

/// The processes of one machine that failed by themselves.
void add_failed(const std::string& run, int attempt, int place, std::vector<Failed>& all) {
  const std::string state = run + "/machine" + std::to_string(place);
  const std::string node = read_line(state + "/node");
  for (const std::string& name : list_folder(state + "/ranks")) {
    const std::string record = state + "/ranks/" + name;
    const std::string line = read_line(record);
    std::string_view rest = line;
    const int code = parse_number<int>(cut_word(rest)).value_or(0);
    const bool is_told = !cut_word(rest).empty();
    struct stat found {};
    if (code == 0 || ::stat(record.c_str(), &found) != 0) continue;
    // torchrun is one process with several ranks, and has noted which of them failed.
    const auto rank = parse_number<int>(
        exists(state + "/first_failure") ? read_first_failure(state, attempt) : name);
    if (!rank) continue;
    RankEnd end{"rank " + std::to_string(*rank) + " on machine " + std::to_string(place), code,
                read_last_words(state + "/" + last_words_file(attempt, *rank)),
                last_line_of_rank(state, attempt, std::to_string(*rank))};
    if (!node.empty()) end.who += " (" + node + ")";
    if (is_told && meaning_of(end) != Meaning::aftermath) continue;
    all.push_back({end, state, place, *rank, found.st_mtim});
  }
}

}  // namespace

int tell_job_cause(const std::vector<std::string>& words) {
  if (words.size() != 4) throw std::runtime_error("cause: words are missing");
  const auto number = [&](std::size_t at) { return number_among(words, at); };
  const int first = number(2);
  std::vector<Failed> all;
  for (int place = first; place < first + number(3); ++place)
    add_failed(words[0], number(1), place, all);
  if (all.empty()) return 0;
  const Failed& cause = *std::ranges::min_element(all, {}, &Failed::order);
  const std::string text = describe(cause.end);
  for (int place = first; place < first + number(3); ++place)
    write_in_place(words[0] + "/machine" + std::to_string(place) + "/" + kCausePlaceFile,
                   to_line({cause.place, cause.rank}) + "\n");
  write_all(STDOUT_FILENO, in_ascii(text.substr(0, kLongestCause)) + "\n");
  return meaning_of(cause.end) == Meaning::mistake ? kMistakeTold : 0;
}

}  // namespace dtool::host
