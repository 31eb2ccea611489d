// SPDX-License-Identifier: MIT
#include "cli/run/host/rank_logs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "cli/run/host/job.h"
#include "cli/run/host/line_merger.h"
#include "ssh/host/child.h"
#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPiece = 256U << 10U;  // of one rank at a time
constexpr std::size_t kFlood = 64U << 10U;   // after so much at once there is no pause
constexpr Time kShortPause = 20ms;
constexpr Time kLongPause = 100ms;
constexpr Time kForSettling = 2s;
constexpr Time kForFinishing = 5s;
constexpr Time kForFullDisk = 3s;
constexpr int kSettle = -1;  // a message; the others are places of ranks that have ended

struct Source {
  Descriptor file;
  std::uint64_t offset = 0;
  pid_t pid = 0;
  std::uint64_t start = 0;
  bool has_ended = false;       ///< its process
  bool is_complete = false;     ///< all of it is in the text
  std::uint64_t to_settle = 0;  ///< offset that is waited for
};

/// The merging process.
class Merging {
 public:
  Merging(std::vector<Source> sources, const std::vector<int>& ranks, Descriptor log,
          Descriptor channel)
      : sources_(std::move(sources)),
        merger_(ranks),
        log_(std::move(log)),
        channel_(std::move(channel)) {}
  void run();

 private:
  std::size_t read_all();
  std::size_t read_some_of(std::size_t which);
  bool is_settled() const;
  bool write_out();
  void hear(Time patience);
  void look_at_processes();

  std::vector<Source> sources_;
  LineMerger merger_;
  std::string piece_ = std::string(kPiece, '\0');
  std::size_t written_ = 0;  ///< of the merger's text
  Descriptor log_;
  Descriptor channel_;  ///< closed: the process that started this one has ended
  bool is_to_settle_ = false;
};

/// How many bytes were new.
std::size_t Merging::read_some_of(std::size_t which) {
  Source& source = sources_[which];
  const ssize_t got =
      ::pread(source.file.get(), piece_.data(), piece_.size(), static_cast<off_t>(source.offset));
  if (got > 0) {
    const auto size = static_cast<std::size_t>(got);
    source.offset += size;
    merger_.add(which, {piece_.data(), size}, time_since_boot());
    return size;
  }
  if (source.has_ended && !source.is_complete) {
    merger_.end(which);
    source.is_complete = true;
  }
  return 0;
}

/// The disk may be full: then nothing more is read until there is room.
bool Merging::write_out() {
  std::string& text = merger_.text();
  while (written_ < text.size()) {
    const ssize_t size = ::write(log_.get(), text.data() + written_, text.size() - written_);
    if (size == -1 && errno == EINTR) continue;
    if (size <= 0) return false;
    written_ += static_cast<std::size_t>(size);
  }
  text.clear();
  written_ = 0;
  return true;
}

std::size_t Merging::read_all() {
  std::size_t size = 0;
  for (std::size_t i = 0; i < sources_.size() && write_out(); ++i) size += read_some_of(i);
  return size;
}

bool Merging::is_settled() const {
  return std::ranges::all_of(sources_, [](const Source& each) {
    return each.offset >= each.to_settle && each.is_complete == each.has_ended;
  });
}

void Merging::hear(Time patience) {
  if (!channel_.is_open()) return host::pause(patience);
  pollfd heard{channel_.get(), POLLIN, 0};
  const int milliseconds = static_cast<int>(patience / 1ms);
  while (::poll(&heard, 1, milliseconds) > 0) {
    int message = 0;
    const ssize_t size = ::recv(channel_.get(), &message, sizeof message, MSG_DONTWAIT);
    if (size != sizeof message) {
      channel_ = Descriptor();
      return;
    }
    if (message == kSettle) {
      is_to_settle_ = true;
      for (Source& each : sources_) {
        struct stat found {};
        if (::fstat(each.file.get(), &found) == 0)
          each.to_settle = static_cast<std::uint64_t>(found.st_size);
      }
      return;
    }
    if (message >= 0 && static_cast<std::size_t>(message) < sources_.size())
      sources_[static_cast<std::size_t>(message)].has_ended = true;
  }
}

/// Nobody else says which of them have ended any more.
void Merging::look_at_processes() {
  for (Source& each : sources_) {
    if (each.has_ended) continue;
    const auto process = find_process(each.pid, each.start);
    each.has_ended = !process || process->is_dead();
  }
}

void Merging::run() {
  std::optional<Time> full_since;
  for (Time patience = kShortPause;;) {
    const std::size_t size = read_all();
    const bool is_written = write_out();
    if (is_written) full_since.reset();
    if (!is_written && !full_since) full_since = time_since_boot();
    if (is_written && std::ranges::all_of(sources_, &Source::is_complete)) return;
    if (full_since && time_since_boot() - *full_since >= kForFullDisk &&
        std::ranges::all_of(sources_, &Source::has_ended))
      return;
    if (is_to_settle_ && is_written && is_settled()) {
      is_to_settle_ = false;
      if (channel_.is_open()) ::send(channel_.get(), &kSettle, sizeof kSettle, MSG_NOSIGNAL);
    }
    patience = size > 0 ? kShortPause : std::min(2 * patience, kLongPause);
    const bool is_flood = is_written && (size >= kFlood || is_to_settle_);
    hear(is_flood ? 0ms : patience);
    if (!channel_.is_open()) look_at_processes();
  }
}

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
  std::vector<Source> sources;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    Source source;
    source.file = Descriptor(::open(paths_[i].c_str(), O_RDONLY | O_CLOEXEC));
    source.offset = begins_[i];
    source.pid = processes[i];
    const auto process = find_process(processes[i]);
    source.start = process ? process->start : 0;
    sources.push_back(std::move(source));
  }
  Descriptor log(
      ::open((state_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return tell_lack();
  channel_ = Descriptor(ends[0]);
  Descriptor other(ends[1]);
  merging_ = ::fork();
  if (merging_ == -1) tell_lack();
  if (merging_ != 0) return;
  for (const int each : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    ::signal(each, SIG_IGN);
  // mpirun ends the process group of what it started, a second after TERM.
  ::setsid();
  channel_ = Descriptor();
  files_.clear();
  // Who reads this process's output waits for its end.
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, each);
  Merging(std::move(sources), ranks_, std::move(log), std::move(other)).run();
  ::_exit(0);
}

void RankLogs::end(std::size_t which) {
  const int message = static_cast<int>(which);
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
  if (merging_ <= 0) return;
  channel_ = Descriptor();
  wait_for_child(merging_, kForFinishing);
  merging_ = -1;
}

}  // namespace dtool::host
