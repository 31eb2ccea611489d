// SPDX-License-Identifier: MIT
#include "ssh/fanout/serving_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"
#include "ssh/machine/process.h"
#include "ssh/wire/protocol.h"

namespace dtool::ssh {
namespace {

/// After this long without a greeting the program is of no use: `status` waits for 20 s in all, and
/// a busy host takes a second.
constexpr std::chrono::seconds kLongestSilence{15};
// The most output of a log-in shell before the program speaks.
constexpr std::size_t kLongestNoise = 1U << 20U;
/// A log-in that takes longer may have a start-up file that reads standard input to its end.
constexpr std::chrono::seconds kLongestLogIn{20};
/// For the echo of a program that has greeted; a start-up file may have taken the requests.
constexpr std::chrono::seconds kLongestEcho{5};
/// For the end of a program that was told to end. A process of a start-up file may hold its output,
/// and is waited for 5 s.
constexpr std::chrono::seconds kLongestEnd{10};
/// A command that takes too long is given this long to end on the host.
constexpr std::chrono::seconds kLongestExpiry{10};

/// Lets through what comes behind the program's greeting, and keeps what the line says in its
/// place.
class Gate {
 public:
  /// The part of standard output that comes from the program; valid until the next call.
  std::string_view take(std::string_view bytes) {
    if (is_open_) return bytes;
    held_ += bytes;
    const std::size_t at = held_.find(host::kGreeting);
    if (at == held_.npos) {
      if (held_.size() > kLongestNoise)
        throw HostError(Failure::host_program, "the answer is not from dtool-host",
                        "what does a log-in there print? dtool command -- true shows it");
      return {};
    }
    is_open_ = true;
    return std::string_view(held_).substr(at + host::kGreeting.size());
  }

  void take_error(std::string_view bytes) {
    if (errors_.size() < kMostErrors) errors_ += bytes;
  }

  bool is_open() const { return is_open_; }

  /// Whether the line has started the program.
  bool has_begun() const { return held_.find(kHostProgramBegins) != held_.npos; }

  /// The text before the greeting, but the line's own; all text, if there was no greeting.
  std::string noise() const {
    std::string text = held_.substr(0, held_.find(host::kGreeting));
    const std::size_t at = text.rfind(kHostProgramBegins);
    if (at != text.npos) text.erase(at, kHostProgramBegins.size());
    return text;
  }

  /// The beginning of standard error.
  const std::string& errors() const { return errors_; }

  /// The system and processor of a host that lacks the program, `Linux x86_64` or `Linux x86_64
  /// with gzip`; or empty.
  std::string missing_on() const {
    const std::size_t at = held_.rfind(kHostProgramNeeded);
    if (at == held_.npos || is_open_) return {};
    const std::size_t begin = at + kHostProgramNeeded.size();
    return held_.substr(begin, held_.find_first_of("\r\n", begin) - begin);
  }

 private:
  static constexpr std::size_t kMostErrors = 4096;

  std::string held_;
  std::string errors_;
  bool is_open_ = false;
};

}  // namespace

/// One start of the program. Its coroutine may outlive the ServingProgram.
struct ServingProgram::Started {
  explicit Started(Reactor& reactor) : changed(reactor.context()) {}

  Pipe input = make_pipe(NonBlocking::both);
  Gate gate;
  host::FrameReader replies;
  const HostRequests* requests = nullptr;  ///< those in hand
  bool is_written = false;                 ///< all of them
  bool is_last = false;                    ///< the input ends with them, whatever may follow
  bool is_heard = false;                   ///< a reply has come
  std::optional<int> turn_code;            ///< their exit code, once they are answered
  std::optional<int> exit_code;            ///< the program's
  std::exception_ptr failure;
  bool is_over = false;        ///< it has ended, or failed
  asio::steady_timer changed;  ///< cancelled at the end of a turn, and of the program

  void take(Stream stream, std::string_view bytes);
  void end_input() {
    is_last = true;
    if (is_written) input.writer.reset();
  }
  void hand_on(Stream stream, std::string_view bytes) const {
    if (requests != nullptr && requests->on_output && !bytes.empty())
      requests->on_output(stream, bytes);
  }
};

void ServingProgram::Started::take(Stream stream, std::string_view bytes) {
  if (stream == Stream::err) {
    gate.take_error(bytes);
    hand_on(stream, bytes);
    return;
  }
  const std::string_view part = gate.take(bytes);
  is_heard = is_heard || !part.empty();
  if (requests == nullptr || !requests->are_followed) {
    hand_on(stream, part);
    return;
  }
  replies.add(part);
  try {
    while (const auto frame = replies.next()) {
      if (frame->kind == host::Kind::begin_of_requests) continue;
      if (frame->kind == host::Kind::end_of_replies) {
        turn_code = static_cast<int>(host::open<host::EndOfReplies>(*frame).exit_code);
        changed.cancel();
      } else {
        hand_on(stream, host::to_frame(frame->kind, frame->body));
      }
    }
  } catch (const host::BadMessage& error) {
    throw HostError(Failure::host_program, error.what(), error.hint());
  }
}

ServingProgram::ServingProgram(Reactor& reactor, Connection& connection)
    : reactor_(reactor), connection_(connection) {}

bool ServingProgram::is_running() const {
  return started_ != nullptr && !started_->is_over;
}

bool ServingProgram::is_ending() const {
  return is_running() && started_->is_last;
}

asio::awaitable<void> ServingProgram::run(std::shared_ptr<Started> started, std::string line) {
  CommandStreams streams;
  streams.input_fd = started->input.reader.get();
  streams.on_output = [&started](Stream stream, std::string_view bytes) {
    started->take(stream, bytes);
  };
  try {
    started->exit_code = co_await connection_.execute(line, streams, kNoDeadline);
  } catch (...) {  // whatever it is, the one who waits is told
    started->failure = std::current_exception();
  }
  started->input.reader.reset();
  started->is_over = true;
  started->changed.cancel();
}

void ServingProgram::start(Damaged damaged) {
  started_ = std::make_shared<Started>(reactor_);
  asio::co_spawn(reactor_.context(), run(started_, host_program_line(damaged)), asio::detached);
}

/// If not all is written, the program sees the end of its input before the end of a request: else
/// it would wait for the rest.
asio::awaitable<void> ServingProgram::write(std::shared_ptr<Started> started,
                                            const HostRequests& requests) {
  const int pipe = started->input.writer.get();
  std::exception_ptr failure;
  bool is_whole = true;
  try {
    const std::string begin = host::to_frame(host::BeginOfRequests());
    if (requests.are_followed) is_whole = co_await write_all(reactor_, pipe, begin, kNoDeadline);
    if (is_whole) is_whole = co_await requests.write(pipe);
    const std::string end = host::to_frame(host::EndOfRequests());
    if (is_whole && requests.are_followed && !started->is_last)
      is_whole = co_await write_all(reactor_, pipe, end, kNoDeadline);
  } catch (...) {  // whatever it is, the pipe must be closed first
    failure = std::current_exception();
  }
  started->is_written = true;
  if (failure || !is_whole || !requests.are_followed || started->is_last) started->end_input();
  if (failure) std::rethrow_exception(failure);
}

/// Until the requests are answered, or the program has ended.
asio::awaitable<void> ServingProgram::await_end_of_turn(Started& started, Deadline deadline) {
  constexpr std::chrono::seconds kPause{1};
  // Counts its own looks: this process may have stood still, and the greeting be there.
  std::chrono::seconds waited{0};
  enum class Stage { none, log_in, greeting, echo } stage = Stage::none;
  bool is_late = false;
  bool is_silent = false;
  const bool are_followed = started.requests->are_followed;
  while (!started.is_over && (is_late || !started.turn_code)) {
    const bool is_watched = !started.gate.is_open() || (are_followed && !started.is_heard);
    started.changed.expires_at(is_watched ? std::min(deadline, after(kPause)) : deadline);
    co_await reactor_.wait_for(started.changed);
    if (started.is_over || (started.turn_code && !is_late)) continue;
    if (Clock::now() >= deadline) {
      started.end_input();
      if (is_late) connection_.abandon();
      if (!is_late) connection_.expire();
      is_late = true;
      deadline = after(kLongestExpiry);
      continue;
    }
    if (!is_watched) continue;
    const Stage now = started.gate.is_open()     ? Stage::echo
                      : started.gate.has_begun() ? Stage::greeting
                                                 : Stage::log_in;
    waited = now == std::exchange(stage, now) ? waited + kPause : kPause;
    if (stage == Stage::echo && waited >= kLongestEcho) started.end_input();
    if (stage == Stage::log_in && waited >= kLongestLogIn) started.end_input();
    if (stage == Stage::greeting && waited >= kLongestSilence) {
      is_silent = true;
      connection_.abandon();
    }
  }
  if (is_late) throw command_timed_out();
  if (is_silent && !started.turn_code)
    throw HostError(Failure::host_program,
                    fmt::format("dtool-host was started on it, and said nothing for {} seconds",
                                kLongestSilence.count()),
                    "delete .dtool/host in the home folder there: dtool brings it again");
}

/// Returns the exit code of the requests, or of a program that ended.
asio::awaitable<int> ServingProgram::take_turn(const HostRequests& requests, Deadline deadline) {
  const std::shared_ptr<Started> started = started_;
  started->requests = &requests;
  started->turn_code.reset();
  started->is_written = started->is_heard = false;
  TaskGroup writing(reactor_);
  writing.spawn(write(started, requests));
  std::exception_ptr failure;
  try {
    co_await await_end_of_turn(*started, deadline);
    if (!started->turn_code) failure = started->failure;
  } catch (const HostError&) {
    failure = std::current_exception();
  }
  started->requests = nullptr;
  try {
    co_await writing.join();  // it is the better explanation that the input was not whole
  } catch (const HostError&) {
    failure = std::current_exception();
  }
  if (failure) std::rethrow_exception(failure);
  co_return started->turn_code ? *started->turn_code : *started->exit_code;
}

/// By a program that waits. Nothing if it was lost before it could hear them.
asio::awaitable<std::optional<int>> ServingProgram::answer_by_waiting(const HostRequests& requests,
                                                                      Deadline deadline) {
  std::optional<int> exit_code;
  std::exception_ptr failure;
  try {
    exit_code = co_await take_turn(requests, deadline);
  } catch (const HostError& error) {
    failure = std::current_exception();
    was_lost_before_ =
        error.failure() == Failure::connection_lost && !started_->is_heard && !reactor_.abandoned();
  }
  const bool is_lost = !failure && !started_->turn_code && !started_->is_heard;
  if (is_lost || (was_lost_before_ && connection_.is_usable())) co_return std::nullopt;
  if (failure) std::rethrow_exception(failure);
  co_return exit_code;
}

asio::awaitable<int> ServingProgram::answer(HostRequests requests, std::string& log_in_said,
                                            Deadline deadline) {
  was_lost_before_ = false;
  if (is_running()) {
    const auto exit_code = co_await answer_by_waiting(requests, deadline);
    if (exit_code) co_return *exit_code;
    was_lost_before_ = false;
  }
  Damaged damaged = Damaged::is_started;
  for (bool was_brought = false;;) {
    start(damaged);
    const int exit_code = co_await take_turn(requests, deadline);
    const Gate& gate = started_->gate;
    log_in_said = gate.noise();
    if (gate.is_open()) co_return exit_code;
    const std::string missing_on = gate.missing_on();
    const bool is_missing = !missing_on.empty() && exit_code == kHostProgramMissing;
    if (is_missing && was_brought)
      throw HostError(Failure::host_program,
                      "dtool-host was put on it and is not there: is its home folder another one "
                      "at each log-in?");
    if (is_missing) {
      co_await bring_host_program(connection_, missing_on, deadline);
      was_brought = true;
    } else if (damaged == Damaged::is_started) {
      damaged = Damaged::is_removed;
    } else {
      throw not_begun(exit_code, log_in_said, gate.errors());
    }
  }
}

asio::awaitable<void> ServingProgram::end() {
  if (!is_running()) co_return;
  const std::shared_ptr<Started> started = started_;
  started->input.writer.reset();
  bool is_left = false;
  while (!started->is_over) {
    started->changed.expires_at(is_left ? kNoDeadline : after(kLongestEnd));
    co_await reactor_.wait_for(started->changed);
    if (started->is_over || is_left) continue;
    connection_.abandon();
    is_left = true;
  }
}

}  // namespace dtool::ssh
