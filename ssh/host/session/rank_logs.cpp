// SPDX-License-Identifier: MIT
#include "ssh/host/session/rank_logs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

#include "ssh/host/child.h"
#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"
#include "ssh/host/session/job.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr Time kForSettling = 2s;
constexpr Time kForFinishing = 5s;
/// Beyond it something ends the merging process each time.
constexpr int kMostStarts = 100;
/// A file in the run's folder, with the first rank behind it: the merging process holds its lock,
/// and deletes it when all is in the log.
constexpr const char* kMerging = "merging.";

}  // namespace

RankLogs::RankLogs(std::string state, int attempt, std::vector<int> ranks, int processes)
    : state_(std::move(state)), ranks_(std::move(ranks)) {
  const std::string folder = rank_folder(state_);
  bool are_made = processes > 1 && !folder.empty() && make_folder(folder);
  for (std::size_t i = 0; are_made && i < ranks_.size(); ++i) {
    paths_.push_back(rank_log(state_, attempt, ranks_[i]));
    files_.emplace_back(
        ::open(paths_.back().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    struct stat found {};
    are_made = files_.back().is_open() && ::fstat(files_.back().get(), &found) == 0;
    begins_.push_back(static_cast<std::uint64_t>(found.st_size));
  }
  if (!are_made) files_.clear();
  for (const int rank : ranks_)
    note_log_rank(state_, rank, are_open() ? RankLines::marked : RankLines::alone);
}

void RankLogs::tell_lack() const {
  say_in_log(state_ + "/log", with_reason("the ranks' lines are in " + rank_folder(state_) +
                                          " alone: no process can put them here"));
}

void RankLogs::start(const std::vector<pid_t>& processes) {
  if (!are_open()) return;
  for (const pid_t each : processes) {
    const auto process = find_process(each);
    processes_.push_back({each, process ? process->start : 0, false});
  }
  try {
    progress_.emplace(begins_);
  } catch (const std::bad_alloc&) {
    return tell_lack();
  }
  start_merging();
}

void RankLogs::start_merging() {
  ++starts_;
  std::vector<MergedRank> sources;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    MergedRank source;
    source.file = Descriptor(::open(paths_[i].c_str(), O_RDONLY | O_CLOEXEC));
    source.offset = progress_->offset(i);
    source.pid = processes_[i].pid;
    source.start = processes_[i].start;
    source.has_ended = processes_[i].has_ended;
    sources.push_back(std::move(source));
  }
  Descriptor log(
      ::open((state_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return tell_lack();
  channel_ = Descriptor(ends[0]);
  Descriptor other(ends[1]);
  const std::string mark = state_ + "/" + kMerging + std::to_string(ranks_.front());
  const Descriptor lock = lock_file(mark, 0);
  merging_ = ::fork();
  if (merging_ == -1) tell_lack();
  if (merging_ != 0) return;
  for (const int each : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    ::signal(each, SIG_IGN);
  // mpirun ends the process group of what it started, a second after TERM.
  ::setsid();
  let_go();
  // Who reads this process's output waits for its end.
  give_nothing({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
  merge_lines(std::move(sources), ranks_, std::move(log), std::move(other), *progress_);
  ::unlink(mark.c_str());
  ::_exit(0);
}

void RankLogs::keep() {
  // Whoever waits for all children may have heard of its end first.
  if (merging_ <= 0 || ::waitpid(merging_, nullptr, WNOHANG) == 0) return;
  merging_ = -1;
  channel_ = Descriptor();
  if (progress_->is_complete()) return;
  if (starts_ == kMostStarts) return tell_lack();
  start_merging();
}

void RankLogs::let_go() {
  channel_ = Descriptor();
  files_.clear();
}

void RankLogs::end(std::size_t which) {
  const int message = static_cast<int>(which);
  if (which < processes_.size()) processes_[which].has_ended = true;
  if (channel_.is_open()) ::send(channel_.get(), &message, sizeof message, MSG_NOSIGNAL);
}

void RankLogs::settle() {
  if (!channel_.is_open() || ::send(channel_.get(), &kSettle, sizeof kSettle, MSG_NOSIGNAL) == -1)
    return;
  pollfd answered{channel_.get(), POLLIN, 0};
  if (::poll(&answered, 1, static_cast<int>(kForSettling / 1ms)) <= 0) return;
  int answer = 0;
  if (::recv(channel_.get(), &answer, sizeof answer, MSG_DONTWAIT) <= 0) channel_ = Descriptor();
}

void RankLogs::finish() {
  channel_ = Descriptor();
  for (const Time end = time_since_boot() + kForFinishing; merging_ > 0 && time_since_boot() < end;
       keep()) {
    host::pause(20ms);
    channel_ = Descriptor();
  }
}

void tell_unmerged(const std::string& state, const std::string& log) {
  for (const std::string& name : list_folder(state)) {
    const std::string mark = state + "/" + name;
    constexpr int kForItsEnd = 200;  // milliseconds
    if (!name.starts_with(kMerging) || !lock_file(mark, kForItsEnd).is_open()) continue;
    ::unlink(mark.c_str());
    say_in_log(log, "the ranks' last lines may be in " + rank_folder(state) +
                        " alone: the processes that put them here were killed");
  }
}

}  // namespace dtool::host
