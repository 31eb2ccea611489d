// SPDX-License-Identifier: MIT
// The process that puts the lines of a machine's ranks into its log.
#include "ssh/host/session/rank_logs.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/host/child.h"
#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"

namespace dtool::host {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPiece = 256U << 10U;  // the most bytes of one rank at a time
constexpr std::size_t kFlood = 64U << 10U;   // there is no pause after so many bytes at once
constexpr Time kShortPause = 20ms;
constexpr Time kLongPause = 100ms;
constexpr Time kForFullDisk = 3s;

std::uint64_t size_of(const Descriptor& file) {
  struct stat found {};
  return ::fstat(file.get(), &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

class Merging {
 public:
  Merging(std::vector<MergedRank> sources, const std::vector<int>& ranks, Descriptor log,
          Descriptor channel, MergeProgress& progress)
      : sources_(std::move(sources)),
        merger_(ranks),
        log_(std::move(log)),
        channel_(std::move(channel)),
        progress_(progress) {}
  void run();

 private:
  void skip_written();
  std::size_t read_all();
  std::size_t read_some_of(std::size_t which);
  bool is_settled() const;
  bool write_out();
  void hear(Time patience);
  void look_at_processes();

  std::vector<MergedRank> sources_;
  LineMerger merger_;
  std::string piece_ = std::string(kPiece, '\0');
  std::size_t read_ = 0;     ///< the place of the rank whose lines the merger's text has
  std::size_t written_ = 0;  ///< the bytes of the merger's text that are in the log
  Descriptor log_;
  Descriptor channel_;  ///< closed: the process that started this one has ended
  MergeProgress& progress_;
  bool is_to_settle_ = false;
};

/// How many bytes were new.
std::size_t Merging::read_some_of(std::size_t which) {
  MergedRank& source = sources_[which];
  read_ = which;
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

/// The merging process before this one may have been killed between its write and its word of it,
/// or within the write. Others write into the log as well.
void Merging::skip_written() {
  auto [rank, offset, log_size, left] = progress_.open_write();
  if (left == 0 || rank >= sources_.size() || offset != sources_[rank].offset) return;
  std::string& text = merger_.text();
  while (left > 0 && (read_some_of(rank) > 0 || !text.empty())) {
    const std::size_t wanted = std::min<std::uint64_t>(left, text.size());
    std::string there(wanted, '\0');
    const Descriptor log(
        ::open(("/proc/self/fd/" + std::to_string(log_.get())).c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t got = ::pread(log.get(), there.data(), wanted, static_cast<off_t>(log_size));
    there.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (!text.starts_with(there)) return;
    text.erase(0, there.size());
    log_size += there.size();
    left -= there.size();
    if (there.size() < wanted) return;
    if (text.empty()) progress_.end(rank, sources_[rank].offset - merger_.held(rank));
  }
}

/// The disk may be full: then nothing more is read until there is room.
bool Merging::write_out() {
  std::string& text = merger_.text();
  if (text.empty()) return true;
  if (written_ == 0) progress_.begin({read_, progress_.offset(read_), size_of(log_), text.size()});
  while (written_ < text.size()) {
    const ssize_t size = ::write(log_.get(), text.data() + written_, text.size() - written_);
    if (size == -1 && errno == EINTR) continue;
    if (size <= 0) return false;
    written_ += static_cast<std::size_t>(size);
  }
  progress_.end(read_, sources_[read_].offset - merger_.held(read_));
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
  return std::ranges::all_of(sources_, [](const MergedRank& each) {
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
      for (MergedRank& each : sources_) each.to_settle = size_of(each.file);
      return;
    }
    if (message >= 0 && static_cast<std::size_t>(message) < sources_.size())
      sources_[static_cast<std::size_t>(message)].has_ended = true;
  }
}

/// Nobody else says which of them have ended any more.
void Merging::look_at_processes() {
  for (MergedRank& each : sources_) {
    if (each.has_ended) continue;
    const auto process = find_process(each.pid, each.start);
    each.has_ended = !process || process->is_dead();
  }
}

void Merging::run() {
  skip_written();
  std::optional<Time> full_since;
  for (Time patience = kShortPause;;) {
    const std::size_t size = read_all();
    const bool is_written = write_out();
    if (is_written) full_since.reset();
    if (!is_written && !full_since) full_since = time_since_boot();
    if (is_written && std::ranges::all_of(sources_, &MergedRank::is_complete)) break;
    if (full_since && time_since_boot() - *full_since >= kForFullDisk &&
        std::ranges::all_of(sources_, &MergedRank::has_ended))
      break;
    if (is_to_settle_ && is_written && is_settled()) {
      is_to_settle_ = false;
      if (channel_.is_open()) ::send(channel_.get(), &kSettle, sizeof kSettle, MSG_NOSIGNAL);
    }
    patience = pause_after(is_written ? size : 0, patience);
    hear(is_written && is_to_settle_ ? 0ms : patience);
    if (!channel_.is_open()) look_at_processes();
  }
  progress_.complete();
}

}  // namespace

Time pause_after(std::size_t size, Time last) {
  if (size >= kFlood) return 0ms;
  return size > 0 ? kShortPause : std::clamp(2 * last, kShortPause, kLongPause);
}

MergeProgress::MergeProgress(const std::vector<std::uint64_t>& begins) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  const std::size_t count = kOffsets + begins.size();
  void* const memory = ::mmap(nullptr, count * sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* const words = static_cast<std::atomic<std::uint64_t>*>(memory);
  std::uninitialized_value_construct_n(words, count);
  words_ = {words, count};
  for (std::size_t i = 0; i < begins.size(); ++i) word(kOffsets + i) = begins[i];
}

MergeProgress::~MergeProgress() {
  ::munmap(words_.data(), words_.size_bytes());
}

MergeProgress::Write MergeProgress::open_write() const {
  return {word(kRank), word(kOffset), word(kLogSize), word(kSize)};
}

void MergeProgress::begin(const Write& write) {
  word(kSize) = 0;
  word(kRank) = write.rank;
  word(kOffset) = write.offset;
  word(kLogSize) = write.log_size;
  word(kSize) = write.size;
}

void MergeProgress::end(std::size_t rank, std::uint64_t offset) {
  word(kOffsets + rank) = offset;
  word(kSize) = 0;
}

void merge_lines(std::vector<MergedRank> sources, const std::vector<int>& ranks, Descriptor log,
                 Descriptor channel, MergeProgress& progress) {
  Merging(std::move(sources), ranks, std::move(log), std::move(channel), progress).run();
}

namespace {

constexpr Time kBetweenStates = std::chrono::seconds(5);

}  // namespace

LineMerger::LineMerger(const std::vector<int>& ranks) {
  for (const int rank : ranks) ranks_.push_back({rank_mark(rank), {}, {}, -kBetweenStates, 0});
}

void LineMerger::end_line(Rank& rank) {
  text_.append(rank.mark).append(rank.open.empty() ? rank.redrawn : rank.open).append(1, '\n');
  rank.open.clear();
  rank.redrawn.clear();
  rank.held = 0;
}

void LineMerger::show_state(Rank& rank, Time now) {
  if (rank.redrawn.empty() || now - rank.shown < kBetweenStates) return;
  rank.shown = now;
  text_.append(rank.mark).append(rank.redrawn).append(1, '\n');
  rank.redrawn.clear();
}

/// A part of a line, without its end. A carriage return before the end is part of the end.
void LineMerger::add_part(Rank& rank, std::string_view part, Time now) {
  if (!part.empty()) show_state(rank, now);
  rank.held += part.size();
  for (std::size_t end = part.find('\r'); end != part.npos; end = part.find('\r')) {
    rank.open += part.substr(0, end);
    part.remove_prefix(end + 1);
    if (rank.open.empty()) continue;
    rank.redrawn = std::move(rank.open);
    rank.open.clear();
    if (!part.empty()) show_state(rank, now);
  }
  while (!part.empty()) {
    const std::size_t fits = std::min(part.size(), kLongestLine - rank.open.size());
    rank.open += part.substr(0, fits);
    part.remove_prefix(fits);
    if (rank.open.size() != kLongestLine) continue;
    end_line(rank);
    rank.held = part.size();
  }
}

void LineMerger::add(std::size_t which, std::string_view bytes, Time now) {
  Rank& rank = ranks_[which];
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(std::min(bytes.size(), part.size() + 1));
    const bool is_plain = rank.open.empty() && rank.redrawn.empty() && end != bytes.npos &&
                          part.size() < kLongestLine && part.find('\r') == part.npos;
    if (is_plain) {
      text_.append(rank.mark).append(part).append(1, '\n');
      continue;
    }
    add_part(rank, part, now);
    if (end != std::string_view::npos) end_line(rank);
  }
}

void LineMerger::end(std::size_t which) {
  Rank& rank = ranks_[which];
  if (!rank.open.empty() || !rank.redrawn.empty()) end_line(rank);
}

}  // namespace dtool::host
