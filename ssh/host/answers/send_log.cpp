// SPDX-License-Identifier: MIT
// Sends a job's log to dtool.
#include "ssh/host/answers/answers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "ssh/host/answers/log_filter.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"
#include "ssh/host/session/scheduled_job.h"
#include "ssh/host/versions.h"
#include "ssh/wire/protocol.h"
#include "ssh/wire/words.h"

namespace dtool::host {

namespace {

constexpr std::chrono::milliseconds kBetweenReads{200};
constexpr int kLooksUntilSign = 5;  // the looks between two signs of life, if there is nothing new
constexpr std::size_t kPiece = 64U << 10U;
constexpr std::uint64_t kFingerprint = 512;        // the bytes by which a place is found again
constexpr std::uint64_t kWithoutWord = 4U << 20U;  // bytes without a line that is sent

Descriptor open_file(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

std::uint64_t size_of(int file) {
  struct stat found;
  return ::fstat(file, &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

bool is_same_file(int file, const std::string& path) {
  struct stat one, other;
  return ::fstat(file, &one) == 0 && ::stat(path.c_str(), &other) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// At most a piece of it, from there on.
std::string read_at(int file, std::uint64_t offset, std::size_t most) {
  std::string piece(std::min(most, kPiece), '\0');
  const ssize_t size = ::pread(file, piece.data(), piece.size(), static_cast<off_t>(offset));
  piece.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return piece;
}

/// Where the last lines begin before that place of a file, mostly its end.
std::uint64_t begin_of_lines(int file, std::uint64_t lines, std::uint64_t size) {
  std::uint64_t at = size;
  std::uint64_t found = 0;
  while (at > 0) {
    const std::uint64_t from = at - std::min<std::uint64_t>(at, kPiece);
    const std::string piece = read_at(file, from, at - from);
    for (std::size_t i = piece.size(); i > 0; --i) {
      const std::uint64_t end = from + i;  // the place behind that character
      if (piece[i - 1] != '\n' || end == size) continue;
      if (++found == lines) return end;
    }
    at = from;
  }
  return lines == 0 ? size : 0;
}

/// Where the line begins that has that place.
std::uint64_t begin_of_line(int file, std::uint64_t offset) {
  const std::uint64_t from = offset - std::min<std::uint64_t>(offset, kPiece);
  const std::string piece = read_at(file, from, offset - from);
  const std::size_t end = piece.rfind('\n');
  return end == piece.npos ? from : from + end + 1;
}

/// Whether these bytes stand before that place of the file.
bool holds(int file, std::uint64_t offset, const std::string& before) {
  if (size_of(file) < offset || offset < before.size()) return false;
  return read_at(file, offset - before.size(), before.size()) == before;
}

/// The file that the log was called when `before` was read from it: itself, or one that a rotation
/// has renamed, `log.1`.
std::optional<std::string> find_earlier(const std::string& log, const LogRequest& request) {
  const Descriptor now = open_file(log);
  if (now.is_open() && holds(now.get(), request.offset, request.before.text)) return log;
  // The file itself may be gone at the moment, so that the link leads nowhere.
  std::array<char, 4096> target{};
  const ssize_t size = ::readlink(log.c_str(), target.data(), target.size());
  if (size <= 0) return std::nullopt;
  const std::string path(target.data(), static_cast<std::size_t>(size));
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const std::string& each : list_folder(folder_of(path))) {
    if (each.size() <= name.size() || each.compare(0, name.size(), name) != 0) continue;
    const std::string file = folder_of(path) + "/" + each;
    const Descriptor other = open_file(file);
    if (other.is_open() && holds(other.get(), request.offset, request.before.text)) return file;
  }
  return std::nullopt;
}

/// One log on its way.
class Sending {
 public:
  Sending(const LogRequest& request, int output, std::string state)
      : request_(request), output_(output), state_(std::move(state)) {
    if (!request.ranks.empty() || !request.pattern.text.empty()) filter_.emplace(request);
  }

  /// False if there is no such file.
  bool open(const std::string& path) {
    file_ = open_file(path);
    return file_.is_open();
  }
  /// The log that the state folder has now.
  std::string log() const { return state_ + "/log"; }

  void begin(bool is_lost);
  /// Sends what the file has, or what it has up to `end`.
  void send_rest(std::optional<std::uint64_t> end = {});
  /// A line without an end is complete, because nothing follows.
  void end_line();

  /// A log that was renamed is read until another one of its name has content: jobs keep the file
  /// that they have open.
  bool is_replaced() const {
    const Descriptor now = open_file(log());
    return now.is_open() && size_of(now.get()) != 0 && !is_same_file(file_.get(), log());
  }

  void go_on_with_next() {
    send_rest();
    break_off(true);
    open(log());
  }

  /// Of the file, or of the part of it that is wanted.
  std::uint64_t size() const {
    const std::uint64_t all = size_of(file_.get());
    return request_.until ? std::min(all, *request_.until) : all;
  }

  template <typename Message>
  void send(const Message& message) {
    write_all(output_, to_frame(message));
  }

 private:
  void look_at_ranks();
  std::uint64_t begin_of_selected(std::uint64_t lines) const;
  void send_selected(std::string lines);
  void break_off(bool is_rotated);

  const LogRequest& request_;
  int output_;
  std::string state_;
  Descriptor file_;
  std::uint64_t offset_ = 0;
  std::optional<LogFilter> filter_;
  std::uint64_t told_offset_ = 0;  ///< the offset that was told last; used with a filter
  LogRanks ranks_;
  bool are_ranks_told_ = false;
};

/// Called after the log was read, since a rank is noted before its first line.
void Sending::look_at_ranks() {
  if (are_ranks_told_ && ranks_.are_marked && !request_.is_followed) return;
  LogRanks now = read_log_ranks(state_);
  if (are_ranks_told_ && now.ranks == ranks_.ranks && now.are_marked == ranks_.are_marked) return;
  ranks_ = std::move(now);
  are_ranks_told_ = true;
  if (filter_) filter_->set_ranks(ranks_);
  send(RanksOfLog{{ranks_.ranks.begin(), ranks_.ranks.end()}, ranks_.are_marked});
}

/// Where the last lines begin that the filter lets through; without any, where new ones will.
std::uint64_t Sending::begin_of_selected(std::uint64_t lines) const {
  LogFilter looking(request_);
  looking.set_ranks(read_log_ranks(state_));
  std::deque<std::uint64_t> begins;
  std::uint64_t line = offset_;  // begins there
  const auto take = [&](const std::string& passed) {
    if (passed.empty()) return;
    begins.push_back(line);
    if (begins.size() > lines) begins.pop_front();
  };
  const std::uint64_t end = size();
  for (std::uint64_t at = offset_; at < end;) {
    const std::string piece = read_at(file_.get(), at, end - at);
    if (piece.empty()) break;
    for (std::string_view left = piece; !left.empty();) {
      const std::size_t line_end = left.find('\n');
      const std::string_view part = left.substr(0, line_end == left.npos ? line_end : line_end + 1);
      take(looking.add(part));
      left.remove_prefix(part.size());
      at += part.size();
      if (looking.held() == 0) line = at;
    }
  }
  if (lines == 0) return request_.is_followed ? line : end;  // a line that goes on will be new
  take(looking.rest());
  return begins.empty() ? line : begins.front();
}

void Sending::begin(bool is_lost) {
  offset_ = is_lost ? 0 : request_.offset;
  if (request_.since_s) {
    offset_ = log_size_then(state_, *request_.since_s);
    offset_ = begin_of_line(file_.get(), std::min(offset_, size()));
  }
  if (request_.lines)
    offset_ = std::max(offset_, filter_ ? begin_of_selected(*request_.lines)
                                        : begin_of_lines(file_.get(), *request_.lines, size()));
  told_offset_ = offset_;
  send(LogBegin{offset_, is_lost, identify_host()});
  look_at_ranks();
}

void Sending::send_selected(std::string lines) {
  const std::uint64_t place = offset_ - filter_->held();
  if (lines.empty() && place - std::min(place, told_offset_) < kWithoutWord) return;
  const std::uint64_t from = place - std::min(place, kFingerprint);
  told_offset_ = place;
  send(SelectedLines{{std::move(lines)}, place, {read_at(file_.get(), from, place - from)}});
}

void Sending::end_line() {
  if (filter_) send_selected(filter_->rest());
}

void Sending::break_off(bool is_rotated) {
  end_line();
  send(LogBreak{is_rotated});
  offset_ = 0;
  told_offset_ = 0;
}

void Sending::send_rest(std::optional<std::uint64_t> end) {
  if (size() < offset_) break_off(false);
  for (;;) {
    const std::size_t most = end ? static_cast<std::size_t>(std::min<std::uint64_t>(
                                       *end - std::min(*end, offset_), kPiece))
                                 : kPiece;
    std::string piece = read_at(file_.get(), offset_, most);
    if (piece.empty()) return;
    look_at_ranks();
    offset_ += piece.size();
    if (filter_) {
      send_selected(filter_->add(piece));
    } else {
      send(LogBytes{std::move(piece)});
    }
  }
}

int follow(const LogRequest& request, const std::string& state, int output) {
  if (!is_folder(state))
    throw std::runtime_error("the run's folder is not there: dtool kill has taken it away");
  const std::string log = state + "/log";
  FollowedJob job(state);
  std::string file = log;
  bool is_lost = false;
  if (!request.lines && request.offset > 0) {
    const auto earlier = find_earlier(log, request);
    is_lost = !earlier;
    file = earlier.value_or(log);
  }
  Sending sending(request, output, state);
  bool runs = job.runs();
  bool is_open = sending.open(file);
  while (!is_open && runs) {
    pause(kBetweenReads);
    runs = job.runs();
    is_open = sending.open(file);
  }
  if (is_open) {
    sending.begin(is_lost);
    for (int looks = 1;; ++looks) {
      sending.send_rest();
      if (sending.is_replaced()) {
        sending.go_on_with_next();
      } else if (!runs) {
        break;
      }
      pause(kBetweenReads);
      if (looks % kLooksUntilSign == 0) sending.send(StillHere());
      runs = job.runs();
    }
    sending.end_line();
  } else {
    sending.send(LogBegin{0, is_lost, identify_host()});
  }
  const LogEnd end = job.wait_for_end();
  sending.send(end);
  return static_cast<int>(end.exit_code);
}

}  // namespace

int send_log(const LogRequest& request, int output) {
  const std::string state = expand_home(request.state_folder);
  if (request.is_followed) return follow(request, state, output);
  Sending sending(request, output, state);
  const std::string log = expand_home(request.log);
  if (!sending.open(sending.log()) && !sending.open(log))
    throw std::runtime_error("there is no log: " + log);
  sending.begin(false);
  sending.send_rest(sending.size());
  sending.end_line();
  sending.send(LogEnd());
  return 0;
}

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};
constexpr int kLooksAtEnd = 10;
constexpr int kTerminated = 143;  // 128 + SIGTERM

}  // namespace

FollowedJob::FollowedJob(std::string state)
    : state_(std::move(state)), leader_(read_job_files(state_).leader) {
  if (has_probe(state_))
    probe_ =
        std::make_unique<Child>(std::vector{own_path(), std::string("await_job"), state_}, state_);
}

bool FollowedJob::runs() {
  if (probe_ != nullptr) return probe_->is_running();
  if (!leader_ || exists(state_ + "/exit_code")) return false;
  return find_leader(*leader_).has_value();
}

bool FollowedJob::is_elsewhere() const {
  const std::string recorded = read_line(state_ + "/host");
  if (recorded.empty() || probe_ != nullptr) return false;
  const std::string found = identify_host();
  std::string_view one = recorded;
  std::string_view other = found;
  const std::string_view recorded_id = cut_word(one), recorded_name = cut_word(one),
                         recorded_boot = cut_word(one), recorded_space = cut_word(one);
  const std::string_view id = cut_word(other), name = cut_word(other), boot = cut_word(other),
                         space = cut_word(other);
  if (boot == recorded_boot) return space != recorded_space;
  return id == "-" || id != recorded_id || name != recorded_name;
}

std::string FollowedJob::became() {
  if (probe_ == nullptr) return exists(state_ + "/process") ? "" : "killed";
  const std::string said = probe_->output();
  return said.substr(0, said.find('\n'));
}

LogEnd FollowedJob::wait_for_end() {
  for (int i = 0; i < kLooksAtEnd; ++i) {
    if (exists(state_ + "/exit_code")) {
      const auto code = parse_number<int>(read_line(state_ + "/exit_code"));
      return {exists(state_ + "/stopped") ? "stopped" : "exited", code.value_or(1)};
    }
    if (is_elsewhere()) return {"unproven", 1};
    // kill leaves its mark, then tells a scheduler, then takes the folder away.
    if (exists(state_ + "/killed") || !is_folder(state_)) return {"killed", kTerminated};
    pause(kBetweenLooks);
  }
  const std::string state = became();
  if (state == "killed") return {state, kTerminated};
  return {state.empty() ? "lost" : state, 1};
}

}  // namespace dtool::host
