// SPDX-License-Identifier: MIT
#include "ssh/session/exchange.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <utility>

#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"

namespace dtool::ssh {

namespace {

/// A background process that keeps the command's output open must not keep dtool waiting for ever,
/// and output that a busy server sends late must not be lost: this long without a byte after the
/// exit code ends the wait.
constexpr auto kSilenceAfterExit = std::chrono::seconds(5);
constexpr std::size_t kChunk = 32'768;
/// A host that never stops talking must let the others have their turn.
constexpr std::size_t kMostAtOnce = 32 * kChunk;

/// RFC 4254 §6.10 names signals without their SIG.
int signal_number(const std::string& name) {
  static const std::map<std::string, int> numbers = {
      {"HUP", 1},   {"INT", 2},   {"QUIT", 3},  {"ILL", 4},   {"ABRT", 6},
      {"FPE", 8},   {"KILL", 9},  {"USR1", 10}, {"SEGV", 11}, {"USR2", 12},
      {"PIPE", 13}, {"ALRM", 14}, {"TERM", 15}};
  const auto found = numbers.find(name);
  return found == numbers.end() ? 127 : found->second;
}

/// Makes a waiter known to others for as long as this lives, however that ends.
class Named {
 public:
  Named(Waiter*& name, Waiter& waiter) : name_(name) { name_ = &waiter; }
  ~Named() { name_ = nullptr; }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;

 private:
  Waiter*& name_;
};

}  // namespace

HostError connection_lost(const Session& session) {
  const std::string reason = session.last_error();
  return {Failure::connection_lost,
          reason.empty() ? "the connection was lost" : "the connection was lost: " + reason};
}

Channel::Channel(Session& session) : handle_(ssh_channel_new(session.handle())) {
  if (handle_ == nullptr) throw connection_lost(session);
  ssh_callbacks_init(&callbacks_);
  callbacks_.userdata = this;
  callbacks_.channel_exit_status_function = [](ssh_session, ssh_channel, int status, void* self) {
    static_cast<Channel*>(self)->exit_code_ = status;
  };
  callbacks_.channel_exit_signal_function = [](ssh_session, ssh_channel, const char* signal, int,
                                               const char*, const char*, void* self) {
    static_cast<Channel*>(self)->exit_code_ = 128 + signal_number(signal);
  };
  ssh_set_channel_callbacks(handle_.get(), &callbacks_);
}

Channel::~Channel() {
  ssh_remove_channel_callbacks(handle_.get(), &callbacks_);
}

Exchange::Exchange(Reactor& reactor, Session& session, CommandStreams streams, EndsWith ends_with,
                   Deadline deadline)
    : Exchange(reactor, session, std::make_unique<Channel>(session), std::move(streams), ends_with,
               deadline) {}

Exchange::Exchange(Reactor& reactor, Session& session, std::unique_ptr<Channel> channel,
                   CommandStreams streams, EndsWith ends_with, Deadline deadline)
    : reactor_(reactor),
      session_(session),
      channel_(std::move(channel)),
      streams_(std::move(streams)),
      ends_with_(ends_with),
      deadline_(deadline) {}

/// Sends the bytes that libssh has queued and takes in new packets. libssh's reading calls do
/// neither while earlier output is still unread, nor after the end of output. This one does, as
/// long as the exit code is unknown.
void Exchange::take_in_packets() {
#if LIBSSH_VERSION_INT >= SSH_VERSION_INT(0, 11, 0)
  std::uint32_t not_read = 0;  // the exit code itself comes by callback
  ssh_channel_get_exit_state(channel_->handle(), &not_read, nullptr, nullptr);
#else
  ssh_channel_get_exit_status(channel_->handle());  // 0.11 calls it deprecated
#endif
  session_.share_packets();
}

asio::awaitable<void> Exchange::send(std::string_view bytes) {
  ssh_channel channel = channel_->handle();
  while (!bytes.empty() && !is_over_) {
    const std::uint32_t window = ssh_channel_window_size(channel);
    // libssh queues without limit if the socket does not accept more, so the queue is sent first.
    if (window == 0 || session_.has_unsent_bytes()) {
      const auto outcome = co_await session_.wait(deadline_);
      if (outcome == Waiter::Outcome::deadline_passed) co_return;
      if (!session_.is_connected()) co_return;
      take_in_packets();
      continue;
    }
    const std::size_t size = std::min({bytes.size(), kChunk, static_cast<std::size_t>(window)});
    const int count = ssh_channel_write(channel, bytes.data(), static_cast<std::uint32_t>(size));
    session_.share_packets();
    if (count == SSH_ERROR) co_return;  // the command has ended; receive() tells how
    if (count == 0) {
      // Keys are being exchanged anew, and libssh takes nothing until that is done. Where a jump
      // host carries this connection, it is the event loop that brings the server's answer.
      const auto outcome = co_await session_.wait(deadline_);
      if (outcome == Waiter::Outcome::deadline_passed || !session_.is_connected()) co_return;
      continue;
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
    // A socket that takes all, and a reader that opens the window as fast, never make this wait.
    sent_at_once_ += static_cast<std::size_t>(count);
    if (sent_at_once_ >= kMostAtOnce) {
      sent_at_once_ = 0;
      co_await reactor_.yield();
    }
  }
}

asio::awaitable<void> Exchange::send_from_fd() {
  Waiter waiter(reactor_, streams_.input_fd);
  const Named named(input_waiter_, waiter);
  std::array<char, kChunk> bytes;
  while (!is_over_) {
    const ssize_t count = ::read(streams_.input_fd, bytes.data(), bytes.size());
    if (count > 0) {
      const std::string_view view(bytes.data(), static_cast<std::size_t>(count));
      co_await send(view);
    } else if (count < 0 && errno == EAGAIN) {
      const auto outcome = co_await waiter.wait(Waiter::For::readable, deadline_);
      if (outcome == Waiter::Outcome::deadline_passed) co_return;
    } else if (count == 0 || errno != EINTR) {
      co_return;
    }
  }
}

asio::awaitable<void> Exchange::send_input() {
  if (streams_.input_fd != -1) {
    co_await send_from_fd();
  } else {
    const std::string_view view = streams_.input;
    co_await send(view);
  }
  if (is_over_) co_return;
  ssh_channel_send_eof(channel_->handle());
  // A busy socket may not have taken all bytes. receive() sends the rest, but it may be waiting
  // only for answers.
  session_.wake();
}

void Exchange::stop_sending() {
  is_over_ = true;
  session_.wake();
  if (input_waiter_ != nullptr) input_waiter_->wake();
}

int Exchange::output_fd(Stream stream) const {
  return stream == Stream::out ? streams_.output_fd : streams_.error_fd;
}

/// Passes on available output, up to kMostAtOnce; returns the number of bytes.
asio::awaitable<std::size_t> Exchange::drain(Stream stream) {
  std::array<char, kChunk> bytes;
  std::size_t total = 0;
  while (total < kMostAtOnce) {
    const int count = ssh_channel_read_nonblocking(channel_->handle(), bytes.data(), bytes.size(),
                                                   stream == Stream::err ? 1 : 0);
    session_.share_packets();
    if (count <= 0) break;
    total += static_cast<std::size_t>(count);
    std::string_view view(bytes.data(), static_cast<std::size_t>(count));
    if (stream == Stream::out && streams_.shell_output == ShellOutput::leave_out)
      view = login_output_.commands_part(view);
    const int fd = output_fd(stream);
    if (fd != -1) {
      co_await write_all(reactor_, fd, view, deadline_);
    } else if (streams_.on_output) {
      streams_.on_output(stream, view);
    }
  }
  co_return total;
}

asio::awaitable<void> Exchange::receive() {
  ssh_channel channel = channel_->handle();
  Deadline silence = kNoDeadline;
  for (;;) {
    const std::uint64_t packets = session_.packets();
    const std::size_t out = co_await drain(Stream::out);
    const std::size_t err = co_await drain(Stream::err);
    if (out + err > 0) {
      silence = kNoDeadline;
      co_await reactor_.yield();
      if (Clock::now() < deadline_) continue;  // more may be there already
    } else {
      if (ssh_channel_is_eof(channel) != 0) take_in_packets();  // the exit code comes last
      // Reading one stream takes in what came for the other, too, up to the end of all.
      if (session_.packets() != packets) {
        co_await reactor_.yield();  // a server may send packets without end that are no output
        if (Clock::now() < deadline_) continue;
      }
    }
    if (ssh_channel_is_closed(channel) != 0) co_return;
    if (!session_.is_connected()) throw connection_lost(session_);
    const bool has_all_output = ssh_channel_is_eof(channel) != 0;
    const bool has_exited = channel_->exit_code() >= 0;
    if (has_all_output && (has_exited || ends_with_ == EndsWith::end_of_output)) co_return;
    if (has_exited && silence == kNoDeadline) silence = after(kSilenceAfterExit);
    const Deadline deadline = std::min(deadline_, silence);
    const auto outcome = co_await session_.wait(deadline);
    if (outcome == Waiter::Outcome::ready) continue;
    if (has_exited) co_return;
    throw command_timed_out();
  }
}

void Exchange::expire() {
  deadline_ = Clock::now();
  session_.wake();
}

void Exchange::signal(const char* name) {
  if (session_.is_connected() && channel_->exit_code() < 0)
    ssh_channel_request_send_signal(channel_->handle(), name);
}

asio::awaitable<void> Exchange::take_last_words(Deadline deadline) {
  deadline_ = deadline;
  co_await receive();
}

asio::awaitable<void> Exchange::run() {
  TaskGroup sender(reactor_);
  sender.spawn(send_input());
  std::exception_ptr failure;
  try {
    co_await receive();
  } catch (...) {  // whatever it is, the sender must end first
    failure = std::current_exception();
  }
  stop_sending();
  co_await sender.join();
  if (failure) std::rethrow_exception(failure);
}

namespace {

constexpr std::string_view kBeginMark = "dtool-command-begins\n";

}  // namespace

std::string behind_mark(std::string_view line) {
  return fmt::format("printf 'dtool-command-begins\\n' && {}", line);
}

std::string_view LoginOutput::commands_part(std::string_view bytes) {
  if (has_begun_) return bytes;
  held_ += bytes;
  const std::size_t at = held_.find(kBeginMark);
  if (at == held_.npos) {
    held_.erase(0, held_.size() - std::min(held_.size(), kBeginMark.size() - 1));
    return {};
  }
  has_begun_ = true;
  return std::string_view(held_).substr(at + kBeginMark.size());
}

}  // namespace dtool::ssh
