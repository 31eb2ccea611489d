// SPDX-License-Identifier: MIT
#include "cli/run/host/kept_ranks.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "cli/run/host/job.h"
#include "cli/run/host/last_words.h"
#include "cli/run/host/report.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/words.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr int kToldToEnd = 143;
constexpr Time kPause = 200ms;
constexpr Time kGrace = 5s;
constexpr Time kLongestStart = 300s;
/// The words of others' failures come in from other machines, up to so much later than mpirun's
/// end.
constexpr Time kForOthers = 5s;

/// The combined records of this machine's processes.
struct Sight {
  int waiting = 0;                 ///< how many have not ended
  int begun = 0;                   ///< how many ever began
  bool is_any_told = false;        ///< to end
  std::optional<int> failed = {};  ///< by itself: a local rank
  RankEnd end = {};                ///< of that one
  bool was_unwatched = false;      ///< dtool's own process for it was killed: its end is not known
};

class KeptRanks {
 public:
  explicit KeptRanks(const std::vector<std::string>& words);
  int keep();

 private:
  std::string record(int local_rank) const;
  std::optional<Process> find_living(int local_rank) const;
  Sight look() const;
  void look_at_mpirun();
  void end_others();
  std::string name_rank(int local_rank) const;
  int fail(const std::string& who, int code);

  std::string state_;
  int attempt_ = 0;
  int first_rank_ = 0;
  int count_ = 0;
  pid_t mpirun_ = 0;  ///< 0: it has ended, or runs elsewhere
  int mpirun_code_ = 0;
  std::optional<Time> mpirun_failed_at_;
};

KeptRanks::KeptRanks(const std::vector<std::string>& words) {
  const auto number = [&](std::size_t at) { return number_among(words, at); };
  if (words.size() != 5) throw std::runtime_error("keep: words are missing");
  state_ = words[0];
  attempt_ = number(1);
  first_rank_ = number(2);
  count_ = number(3);
  mpirun_ = number(4);
}

std::string KeptRanks::record(int local_rank) const {
  return state_ + "/ranks/" + std::to_string(attempt_) + "." + std::to_string(local_rank);
}

std::optional<Process> KeptRanks::find_living(int local_rank) const {
  const std::string line = read_line(record(local_rank));
  std::string_view rest = line;
  const auto pid = parse_number<pid_t>(cut_word(rest));
  const auto start = parse_number<std::uint64_t>(cut_word(rest));
  if (!pid || !start || *pid <= 1) return std::nullopt;
  const auto process = find_process(*pid, *start);
  return process && !process->is_dead() ? process : std::nullopt;
}

Sight KeptRanks::look() const {
  Sight sight;
  for (int i = 0; i < count_; ++i) {
    const std::string file = record(i);
    const bool has_begun = exists(file);
    const bool has_ended = exists(file + ".code");
    if (has_begun) ++sight.begun;
    if (!has_begun || (!has_ended && find_living(i))) {
      ++sight.waiting;
    } else if (exists(file + ".told")) {
      sight.is_any_told = true;
    } else {
      // Without a code, what kept watch over it was killed.
      const int code = parse_number<int>(read_line(file + ".code")).value_or(kKilled);
      const int rank = first_rank_ + i;
      const RankEnd end{"", code, read_last_words(state_ + "/" + last_words_file(attempt_, rank)),
                        last_line_of_rank(state_, attempt_, std::to_string(rank))};
      const bool is_better = !sight.failed || (meaning_of(sight.end) == Meaning::aftermath &&
                                               meaning_of(end) != Meaning::aftermath);
      if (code == 0 || !is_better) continue;
      sight.failed = i;
      sight.end = end;
      sight.was_unwatched = !has_ended;
    }
  }
  return sight;
}

void KeptRanks::look_at_mpirun() {
  if (mpirun_ == 0) return;
  const auto code = wait_for_child(mpirun_, 0s);
  if (!code) return;
  mpirun_ = 0;
  mpirun_code_ = *code;
  if (*code != 0) mpirun_failed_at_ = time_since_boot();
}

/// As without mpirun.
void KeptRanks::end_others() {
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (int i = 0; i < count_; ++i) {
      const auto process = find_living(i);
      if (!process) continue;
      ::kill(process->pid, signal);
      const auto group = parse_number<pid_t>(read_line(record(i) + ".program"));
      // The group of one is everybody.
      if (signal == SIGKILL && group && *group > 1) ::kill(-*group, SIGKILL);
    }
    for (const Time end = time_since_boot() + kGrace; time_since_boot() < end; pause(kPause)) {
      if (look().waiting == 0) return;
    }
  }
}

/// torchrun is one process with several ranks, and has noted which of them failed.
std::string KeptRanks::name_rank(int local_rank) const {
  const auto noted = parse_number<int>(read_line(state_ + "/first_failure"));
  return std::to_string(noted.value_or(first_rank_) + local_rank);
}

int KeptRanks::fail(const std::string& who, int code) {
  write_in_place(state_ + "/first_failure", who + "\n");
  return code;
}

int KeptRanks::keep() {
  const Time began = time_since_boot();
  std::optional<Time> told_at;
  for (;; pause(kPause)) {
    const Time now = time_since_boot();
    Sight sight = look();
    // The aftermath of a rank's end may be seen before that end.
    if (sight.failed && meaning_of(sight.end) == Meaning::aftermath) {
      pause(kPause);
      sight = look();
    }
    if (sight.failed) {
      const std::string rank = name_rank(*sight.failed);
      const int code =
          fail(sight.was_unwatched ? std::string(kOwnProcess) + " for rank " + rank : rank,
               sight.end.code);
      if (exists(state_ + "/supervise")) return code;
      end_others();
      if (mpirun_ != 0) wait_for_child(mpirun_);  // the other machines' processes go on
      return code;
    }
    look_at_mpirun();
    if (mpirun_failed_at_ && now - *mpirun_failed_at_ >= kForOthers) {
      const std::string line = words_of_mpirun(read_file(state_ + "/mpirun.said").value_or(""));
      write_all(STDOUT_FILENO, line + "\n");
      return fail("mpirun", mpirun_code_);
    }
    if (sight.waiting == 0 && mpirun_ == 0 && !mpirun_failed_at_ && !sight.is_any_told) return 0;
    // Those that were told to end are not the cause; that one will have been heard by now.
    if (sight.is_any_told && sight.waiting == 0) {
      if (!told_at) told_at = now;
      if (now - *told_at >= 2 * kForOthers) return kToldToEnd;
    }
    if (sight.begun == 0 && now - began >= kLongestStart) {
      write_all(STDERR_FILENO, "dtool: mpirun on machine 0 has started no process here in 300 s\n");
      return 1;
    }
  }
}

bool is_noise(std::string_view line) {
  constexpr std::array<std::string_view, 4> kBeginnings = {
      "Primary job", "a non-zero exit code", "Terminated", "ORTE was unable to reliably"};
  const auto begins = [line](std::string_view beginning) { return line.starts_with(beginning); };
  return std::ranges::any_of(kBeginnings, begins) ||
         (line.starts_with("[") &&
          (line.find("PMIX ERROR") != line.npos || line.find("Warning: setpgid") != line.npos));
}

}  // namespace

std::string words_of_mpirun(std::string_view said) {
  constexpr std::size_t kMostWords = 500;
  std::string text;
  std::string host;
  bool is_over = false;
  while (!said.empty()) {
    std::string line(cut_line(said));
    std::erase_if(line, [](char each) { return each < ' ' || each > '~'; });
    if (line.find(" Remote daemon: ") != line.npos && line.find(" on node ") != line.npos) {
      host = " (" + line.substr(line.rfind(' ') + 1) + ")";
    } else if (line.find_first_not_of('-') == line.npos) {  // around and between its paragraphs
      is_over = !text.empty();
    } else if (!is_over && !is_noise(line)) {
      if (!text.empty()) text += ' ';
      text += line.substr(std::min(line.find_first_not_of(' '), line.size()));
    }
  }
  if (text.empty()) text = "mpirun left no word of why";
  return text.substr(0, kMostWords) + host;
}

int keep_ranks(const std::vector<std::string>& words) {
  return KeptRanks(words).keep();
}

}  // namespace dtool::host
