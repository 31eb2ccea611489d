// SPDX-License-Identifier: MIT
// The processes that mpirun starts on one machine.
#include "ssh/host/session/rank.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/job.h"
#include "ssh/host/session/last_words.h"
#include "ssh/host/session/report.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr Time kPause = 200ms;
constexpr Time kGrace = 5s;

/// A process that failed by itself.
struct FailedRank {
  int local_rank;
  RankEnd end;
  bool was_unwatched;  ///< dtool's own process for it was killed: its end is not known
};

/// The combined records of this machine's processes.
struct Sight {
  int waiting = 0;           ///< how many have not ended
  int begun = 0;             ///< how many ever began
  bool is_any_told = false;  ///< some process was told to end
  std::optional<FailedRank> failed = {};

  bool is_aftermath() const { return failed && meaning_of(failed->end) == Meaning::aftermath; }
};

class KeptRanks {
 public:
  /// Those of keep_ranks().
  explicit KeptRanks(const std::vector<std::string>& words);
  int keep();

 private:
  std::string record(int local_rank) const;
  std::optional<Process> find_living(int local_rank) const;
  Sight look() const;
  void look_at_mpirun(Time now);
  void end_others();
  std::string name_rank(int local_rank) const;
  void note_failure(const std::string& who) const;
  int end_after(const FailedRank& failed);
  int end_as(const KeptEnd& end) const;

  std::string state_;
  int attempt_;
  int first_rank_;
  int count_;
  pid_t mpirun_;  ///< 0: it has ended, or runs elsewhere
  std::optional<FailedMpirun> failed_mpirun_;
};

KeptRanks::KeptRanks(const std::vector<std::string>& words)
    : state_(words[0]),
      attempt_(number_among(words, 1)),
      first_rank_(number_among(words, 2)),
      count_(number_among(words, 3)),
      mpirun_(number_among(words, 4)) {}

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
      const bool is_better =
          !sight.failed || (sight.is_aftermath() && meaning_of(end) != Meaning::aftermath);
      if (code != 0 && is_better) sight.failed = FailedRank{i, end, !has_ended};
    }
  }
  return sight;
}

void KeptRanks::look_at_mpirun(Time now) {
  if (mpirun_ == 0) return;
  const auto code = wait_for_child(mpirun_, 0s);
  if (!code) return;
  mpirun_ = 0;
  if (*code != 0) failed_mpirun_ = {*code, now};
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

void KeptRanks::note_failure(const std::string& who) const {
  write_in_place(state_ + "/first_failure", who + "\n");
}

int KeptRanks::end_after(const FailedRank& failed) {
  const std::string rank = name_rank(failed.local_rank);
  note_failure(failed.was_unwatched ? std::string(kOwnProcess) + " for rank " + rank : rank);
  if (exists(state_ + "/supervise")) return failed.end.code;
  end_others();
  if (mpirun_ != 0) wait_for_child(mpirun_);  // the other machines' processes go on
  return failed.end.code;
}

int KeptRanks::end_as(const KeptEnd& end) const {
  if (end.is_mpiruns) {
    const std::string line = words_of_mpirun(read_file(state_ + "/mpirun.said").value_or(""));
    write_all(STDOUT_FILENO, line + "\n");
    note_failure("mpirun");
  }
  if (!end.complaint.empty())
    write_all(STDERR_FILENO, std::string("dtool: ").append(end.complaint).append("\n"));
  return end.code;
}

int KeptRanks::keep() {
  const Time began = time_since_boot();
  std::optional<Time> told_at;
  for (;; pause(kPause)) {
    const Time now = time_since_boot();
    Sight sight = look();
    // The aftermath of a rank's end may be seen before that end.
    if (sight.is_aftermath()) {
      pause(kPause);
      sight = look();
    }
    if (sight.failed) return end_after(*sight.failed);
    look_at_mpirun(now);
    if (sight.is_any_told && sight.waiting == 0 && !told_at) told_at = now;
    const auto end = find_kept_end(
        {began, sight.waiting, sight.begun, told_at, mpirun_ != 0, failed_mpirun_}, now);
    if (end) return end_as(*end);
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

std::optional<KeptEnd> find_kept_end(const KeptRanksSeen& seen, Time now) {
  constexpr int kToldToEnd = 143;
  constexpr Time kLongestStart = 300s;
  /// The words of others' failures come in from other machines, up to so much later than mpirun's
  /// end.
  constexpr Time kForOthers = 5s;
  const auto& mpirun = seen.failed_mpirun;
  if (mpirun && now - mpirun->at >= kForOthers) return KeptEnd{mpirun->code, true};
  if (seen.waiting == 0 && !seen.has_mpirun && !mpirun && !seen.told_at) return KeptEnd{0};
  // Those that were told to end are not the cause; that one will have been heard by now.
  if (seen.told_at && now - *seen.told_at >= 2 * kForOthers) return KeptEnd{kToldToEnd};
  if (seen.begun == 0 && now - seen.kept_since >= kLongestStart)
    return KeptEnd{1, false, "mpirun on machine 0 has started no process here in 300 s"};
  return std::nullopt;
}

int keep_ranks(const std::vector<std::string>& words) {
  if (words.size() != 5) throw std::runtime_error("keep: words are missing");
  return KeptRanks(words).keep();
}

}  // namespace dtool::host
