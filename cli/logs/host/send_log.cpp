// SPDX-License-Identifier: MIT
#include "cli/logs/host/send_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>

#include "cli/logs/host/followed_job.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/frames.h"
#include "ssh/host/identity.h"

namespace dtool::host {
namespace {

constexpr std::chrono::milliseconds kBetweenReads{200};
constexpr int kLooksUntilSign = 5;  // between two signs of life, if there is nothing new
constexpr std::size_t kPiece = 64U << 10U;

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

/// Where the last lines of a file begin.
std::uint64_t begin_of_lines(int file, std::uint64_t lines) {
  const std::uint64_t size = size_of(file);
  std::uint64_t at = size;
  std::uint64_t found = 0;
  while (at > 0) {
    const std::uint64_t from = at - std::min<std::uint64_t>(at, kPiece);
    const std::string piece = read_at(file, from, at - from);
    for (std::size_t i = piece.size(); i > 0; --i) {
      const std::uint64_t end = from + i;  // behind that character
      if (piece[i - 1] != '\n' || end == size) continue;
      if (++found == lines) return end;
    }
    at = from;
  }
  return lines == 0 ? size : 0;
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
  Sending(int output, std::string log) : output_(output), log_(std::move(log)) {}

  /// False if there is no such file.
  bool open(const std::string& path) {
    file_ = open_file(path);
    return file_.is_open();
  }

  void begin(const LogRequest& request, bool is_lost) {
    offset_ = is_lost ? 0 : request.offset;
    if (request.lines) offset_ = begin_of_lines(file_.get(), *request.lines);
    send(LogBegin{offset_, is_lost, identify_host()});
  }

  /// Sends what the file has; with `most`, no more than that.
  void send_rest(std::optional<std::uint64_t> end = {}) {
    if (size_of(file_.get()) < offset_) {
      send(LogBreak{false});
      offset_ = 0;
    }
    for (;;) {
      const std::size_t most = end ? static_cast<std::size_t>(std::min<std::uint64_t>(
                                         *end - std::min(*end, offset_), kPiece))
                                   : kPiece;
      const std::string piece = read_at(file_.get(), offset_, most);
      if (piece.empty()) return;
      offset_ += piece.size();
      send(LogBytes{piece});
    }
  }

  /// A log that was renamed is read until another one of its name has content: jobs keep the file
  /// that they have open.
  bool is_replaced() const {
    const Descriptor now = open_file(log_);
    return now.is_open() && size_of(now.get()) != 0 && !is_same_file(file_.get(), log_);
  }

  void go_on_with_next() {
    send_rest();
    send(LogBreak{true});
    offset_ = 0;
    open(log_);
  }

  std::uint64_t size() const { return size_of(file_.get()); }

  template <typename Message>
  void send(const Message& message) {
    write_all(output_, to_frame(message));
  }

 private:
  int output_;
  std::string log_;
  Descriptor file_;
  std::uint64_t offset_ = 0;
};

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
  Sending sending(output, log);
  bool runs = job.runs();
  bool is_open = sending.open(file);
  while (!is_open && runs) {
    pause(kBetweenReads);
    runs = job.runs();
    is_open = sending.open(file);
  }
  if (is_open) {
    sending.begin(request, is_lost);
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
  Sending sending(output, state + "/log");
  const std::string log = expand_home(request.log);
  if (!sending.open(state + "/log") && !sending.open(log))
    throw std::runtime_error("there is no log: " + log);
  sending.begin(request, false);
  sending.send_rest(sending.size());
  sending.send(LogEnd());
  return 0;
}

}  // namespace dtool::host
