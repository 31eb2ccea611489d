// SPDX-License-Identifier: MIT
#include "ssh/program/master.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include "ssh/host_error.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/machine/fd_bytes.h"
#include "ssh/machine/process.h"
#include "ssh/program/master_protocol.h"
#include "ssh/script.h"
#include "ssh/scripts.h"
#include "ssh/session/exchange.h"

namespace dtool::ssh {
namespace {

using master_protocol::MuxKind;
using master_protocol::Packet;

/// A master is a process of this machine that does nothing for long.
constexpr auto kLongestAnswer = std::chrono::seconds(5);
constexpr auto kEndOfOutput = std::chrono::seconds(5);
constexpr auto kSlice = std::chrono::milliseconds(200);

HostError master_lost() {
  return {Failure::connection_lost, "the connection was lost: its ssh process has ended"};
}

/// Connected to a process of this user, or none and errno.
OwnedFd connect_to(const std::string& path) {
  OwnedFd fd = connect_unix(path, SOCK_STREAM);
  if (!fd || is_own_user(fd.get())) return fd;
  errno = EPERM;
  return {};
}

/// One byte with a descriptor, as OpenSSH's mm_send_fd.
bool send_descriptor(int socket, int fd) {
  char byte = 0;
  iovec bytes{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

/// A conversation with a master.
class Talk {
 public:
  Talk(Reactor& reactor, OwnedFd socket)
      : reactor_(reactor), socket_(std::move(socket)), waiter_(reactor, socket_.get()) {}

  int fd() const { return socket_.get(); }

  asio::awaitable<bool> say(std::string bytes) {
    const Deadline deadline = after(kLongestAnswer);
    const std::string_view view = bytes;
    co_return co_await write_all(reactor_, socket_.get(), view, deadline);
  }

  asio::awaitable<bool> hand_over(int fd) {
    const Deadline deadline = after(kLongestAnswer);
    while (!send_descriptor(socket_.get(), fd)) {
      if (errno != EAGAIN && errno != EINTR) co_return false;
      const auto outcome = co_await waiter_.wait(Waiter::For::writable, deadline);
      if (outcome == Waiter::Outcome::deadline_passed) co_return false;
    }
    co_return true;
  }

  /// The next packet. Nothing: it has ended (is_over()), the deadline passed, or expire() was
  /// called.
  asio::awaitable<std::optional<Packet>> hear(Deadline deadline) {
    while (!is_expired_) {
      if (std::optional<Packet> packet = master_protocol::take_packet(bytes_)) co_return packet;
      std::array<char, 4096> part;
      const ssize_t count = ::recv(socket_.get(), part.data(), part.size(), 0);
      if (count > 0) {
        bytes_.append(part.data(), static_cast<std::size_t>(count));
        continue;
      }
      is_over_ = count == 0 || (errno != EAGAIN && errno != EINTR);
      if (is_over_) co_return std::nullopt;
      const auto outcome = co_await waiter_.wait(Waiter::For::readable, deadline);
      if (outcome == Waiter::Outcome::deadline_passed) co_return std::nullopt;
    }
    co_return std::nullopt;
  }

  /// As if the deadline of each hear() had passed.
  void expire() {
    is_expired_ = true;
    waiter_.wake();
  }

  bool is_over() const { return is_over_; }

 private:
  Reactor& reactor_;
  OwnedFd socket_;
  Waiter waiter_;
  std::string bytes_;
  bool is_over_ = false;
  bool is_expired_ = false;
};

/// Many at once may want the same master, whose queue is short.
asio::awaitable<OwnedFd> reach(Reactor& reactor, std::string socket) {
  const Deadline deadline = after(kLongestAnswer);
  OwnedFd fd = connect_to(socket);
  while (!fd && errno == EAGAIN && Clock::now() < deadline) {
    co_await reactor.sleep(std::chrono::milliseconds(10));
    fd = connect_to(socket);
  }
  co_return fd;
}

class MasterConnection : public Connection {
 public:
  MasterConnection(Reactor& reactor, Master master, OwnedFd in_use)
      : reactor_(reactor), master_(std::move(master)), in_use_(std::move(in_use)) {}

  asio::awaitable<int> execute(std::string line, CommandStreams streams,
                               Deadline deadline) override;
  void abandon() override {
    if (talk_ != nullptr) ::shutdown(talk_->fd(), SHUT_RDWR);
  }
  void expire() override {
    is_expired_ = true;
    if (talk_ != nullptr) talk_->expire();
  }
  bool is_usable() const override {
    return is_usable_ && static_cast<bool>(connect_to(master_.socket));
  }

 private:
  /// One command's streams on this side, and how it ended.
  struct RunningCommand {
    CommandStreams streams;
    Deadline deadline = kNoDeadline;
    Pipe in, out, err;
    LoginOutput login_output;
    std::optional<int> exit_code;
    std::optional<std::string> why_refused;  ///< no session was opened
  };

  asio::awaitable<void> run(RunningCommand& running, std::string line, Deadline deadline);
  asio::awaitable<void> start(Talk& talk, RunningCommand& running, std::string line);
  asio::awaitable<void> pump_input(RunningCommand& running);
  asio::awaitable<void> pump_output(RunningCommand& running, Stream stream);
  asio::awaitable<void> hand_on(RunningCommand& running);
  asio::awaitable<void> await_end(Talk& talk, RunningCommand& running, Deadline deadline);
  asio::awaitable<void> converse(Talk& talk, RunningCommand& running, Deadline deadline);
  asio::awaitable<void> end_command();

  Reactor& reactor_;
  Master master_;
  OwnedFd in_use_;
  bool is_usable_ = true;
  Talk* talk_ = nullptr;  ///< the command's that runs
  bool is_expired_ = false;
};

asio::awaitable<void> MasterConnection::pump_input(RunningCommand& running) {
  const OwnedFd fd = std::move(running.in.writer);  // closed at the end of this
  std::string_view left = running.streams.input;
  Waiter waiter(reactor_, fd.get());
  while (!left.empty()) {
    const ssize_t count = ::write(fd.get(), left.data(), left.size());
    if (count > 0) {
      left.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EAGAIN && errno != EINTR) {
      co_return;  // the command reads no more
    } else {
      if (Clock::now() >= running.deadline) co_return;
      const Deadline soon = std::min(running.deadline, after(kSlice));
      co_await waiter.wait(Waiter::For::writable, soon);
    }
  }
}

asio::awaitable<void> MasterConnection::pump_output(RunningCommand& running, Stream stream) {
  // Closed at the end of this function in every case, so that a command whose output is not read
  // does not wait.
  const OwnedFd fd = std::move(stream == Stream::out ? running.out.reader : running.err.reader);
  std::function<void(std::string_view)> on_bytes = [&running, stream](std::string_view bytes) {
    const bool is_cut = stream == Stream::out &&
                        running.streams.shell_output == ShellOutput::leave_out &&
                        running.streams.output_fd < 0;
    const std::string_view part = is_cut ? running.login_output.commands_part(bytes) : bytes;
    if (running.streams.on_output) running.streams.on_output(stream, part);
  };
  co_await read_all(reactor_, fd.get(), on_bytes, &running.deadline);
}

/// Standard output for a descriptor, without what the log-in shell printed first.
asio::awaitable<void> MasterConnection::hand_on(RunningCommand& running) {
  const OwnedFd fd = std::move(running.out.reader);
  Waiter waiter(reactor_, fd.get());
  std::array<char, 32'768> bytes;
  for (;;) {
    const ssize_t count = ::read(fd.get(), bytes.data(), bytes.size());
    if (count > 0) {
      const std::string_view part = running.login_output.commands_part(
          std::string_view(bytes.data(), static_cast<std::size_t>(count)));
      const bool is_taken =
          co_await write_all(reactor_, running.streams.output_fd, part, running.deadline);
      if (!is_taken) co_return;
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
      co_return;
    } else {
      if (Clock::now() >= running.deadline) co_return;
      const Deadline soon = std::min(running.deadline, after(kSlice));
      co_await waiter.wait(Waiter::For::readable, soon);
    }
  }
}

/// Opens the session; from then on the master has the other ends of our pipes.
asio::awaitable<void> MasterConnection::start(Talk& talk, RunningCommand& running,
                                              std::string line) {
  const CommandStreams& streams = running.streams;
  const bool leaves_out = streams.shell_output == ShellOutput::leave_out;
  if (streams.input_fd < 0) running.in = make_pipe(NonBlocking::both);
  if (streams.output_fd < 0 || leaves_out) running.out = make_pipe(NonBlocking::both);
  if (streams.error_fd < 0) running.err = make_pipe(NonBlocking::both);
  const int in = running.in.reader ? running.in.reader.get() : streams.input_fd;
  const int out = running.out.writer ? running.out.writer.get() : streams.output_fd;
  const int err = running.err.writer ? running.err.writer.get() : streams.error_fd;
  const std::string text =
      master_protocol::hello() +
      master_protocol::new_session(leaves_out ? behind_mark(line) : std::string(line));
  bool is_said = co_await talk.say(text);
  if (is_said) is_said = co_await talk.hand_over(in);
  if (is_said) is_said = co_await talk.hand_over(out);
  if (is_said) is_said = co_await talk.hand_over(err);
  if (!is_said) throw master_lost();
  running.in.reader.reset();
  running.out.writer.reset();
  running.err.writer.reset();
}

/// Until the master closes the conversation, which it does once all output is handed on. Throws
/// HostError(timed_out) at the deadline with the command still running.
asio::awaitable<void> MasterConnection::await_end(Talk& talk, RunningCommand& running,
                                                  Deadline deadline) {
  Deadline latest = deadline;
  for (;;) {
    const std::optional<Packet> packet = co_await talk.hear(latest);
    if (!packet && talk.is_over()) co_return;
    // Streams that a background process still holds open are not waited for.
    if (!packet && running.exit_code) co_return;
    if (!packet) throw command_timed_out();
    if (packet->kind == MuxKind::exit_message) {
      running.exit_code = static_cast<int>(packet->second & 0xff);
      latest = std::min(deadline, after(kEndOfOutput));
    } else if (packet->kind == MuxKind::failure || packet->kind == MuxKind::permission_denied) {
      if (packet->kind == MuxKind::permission_denied)
        throw HostError(Failure::connection_lost,
                        fmt::format("ssh opened no session: {}", packet->text),
                        "ControlMaster ask wants a yes to each");
      running.why_refused = packet->text;
      co_return;
    } else if (packet->kind == MuxKind::session_opened && running.streams.on_input_taken) {
      running.streams.on_input_taken();
    }
  }
}

/// TERM, a second of grace, KILL: the script beside the command knows how. Over a connection that
/// others use too it would end their commands: there only the command's streams are closed.
asio::awaitable<void> MasterConnection::end_command() {
  if (master_.is_shared == MasterIsShared::yes) co_return;
  const Command command = bash(scripts::kEnd_commands);
  RunningCommand running;
  running.streams.input = command.input;
  running.deadline = after(kLongestAnswer);
  try {
    OwnedFd socket = co_await reach(reactor_, master_.socket);
    if (!socket) co_return;
    Talk talk(reactor_, std::move(socket));
    const std::string line = command.line;
    const Deadline deadline = running.deadline;
    co_await start(talk, running, line);
    co_await pump_input(running);
    co_await await_end(talk, running, deadline);
  } catch (const HostError&) {
    // A server that allows one command at a time, or does not answer any more.
  } catch (const std::invalid_argument&) {
  }
}

asio::awaitable<void> MasterConnection::converse(Talk& talk, RunningCommand& running,
                                                 Deadline deadline) {
  bool has_timed_out = false;
  try {
    co_await await_end(talk, running, deadline);
  } catch (const HostError& error) {
    if (error.failure() != Failure::timed_out) throw;
    has_timed_out = true;
  } catch (const std::invalid_argument& error) {
    throw HostError(Failure::connection_lost, error.what());
  }
  if (!has_timed_out) co_return;
  co_await end_command();
  running.deadline = after(kSlice);  // the deadline for reading what it still said
  throw command_timed_out();
}

/// Until the command has ended, or the server has refused a session for it.
asio::awaitable<void> MasterConnection::run(RunningCommand& running, std::string line,
                                            Deadline deadline) {
  running.deadline = kNoDeadline;  // its end comes with the conversation's
  OwnedFd socket = co_await reach(reactor_, master_.socket);
  if (!socket) throw master_lost();
  std::optional<Talk> talk;
  talk.emplace(reactor_, std::move(socket));
  talk_ = &*talk;
  if (is_expired_) talk->expire();
  TaskGroup pumps(reactor_);
  std::exception_ptr failure;
  try {
    co_await start(*talk, running, line);
    if (running.in.writer) pumps.spawn(pump_input(running));
    const bool cuts_for_fd = running.out.reader && running.streams.output_fd >= 0;
    if (cuts_for_fd) pumps.spawn(hand_on(running));
    if (running.out.reader && !cuts_for_fd) pumps.spawn(pump_output(running, Stream::out));
    if (running.err.reader) pumps.spawn(pump_output(running, Stream::err));
    co_await converse(*talk, running, deadline);
  } catch (...) {  // whatever it is, the pumps must end first
    failure = std::current_exception();
  }
  talk_ = nullptr;
  talk.reset();  // the master closes the session if it still runs
  if (!failure) running.deadline = after(kEndOfOutput);
  if (failure) running.deadline = std::min(running.deadline, after(kSlice));
  co_await pumps.join();
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<int> MasterConnection::execute(std::string line, CommandStreams streams,
                                               Deadline deadline) {
  is_usable_ = is_expired_ = false;  // the connection is not usable until all is told
  const Deadline patience = std::min(deadline, after(kForEndOfLastSession));
  RunningCommand running;
  for (std::chrono::milliseconds pause{10};; pause *= 2) {
    running = {};
    running.streams = streams;
    co_await run(running, line, deadline);
    if (!running.why_refused) break;
    if (Clock::now() + pause >= patience) throw no_session(*running.why_refused);
    co_await reactor_.sleep(pause);
  }
  if (!running.exit_code) {
    const std::optional<pid_t> pid = co_await find_master(reactor_, master_.socket);
    if (!pid) throw master_lost();
    throw HostError(Failure::connection_lost,
                    "the host closed the command without telling its exit code",
                    "ssh does not tell where a signal ended it");
  }
  is_usable_ = true;
  co_return *running.exit_code;
}

}  // namespace

asio::awaitable<std::optional<pid_t>> find_master(Reactor& reactor, std::string socket) {
  OwnedFd fd = co_await reach(reactor, socket);
  if (!fd) co_return std::nullopt;
  Talk talk(reactor, std::move(fd));
  const std::string text =
      master_protocol::hello() + master_protocol::request(MuxKind::alive_check);
  if (!co_await talk.say(text)) co_return std::nullopt;
  const Deadline deadline = after(kLongestAnswer);
  try {
    for (;;) {
      const std::optional<Packet> packet = co_await talk.hear(deadline);
      if (!packet) co_return std::nullopt;
      if (packet->kind == MuxKind::alive) co_return static_cast<pid_t>(packet->second);
    }
  } catch (const std::invalid_argument&) {
    co_return std::nullopt;
  }
}

OwnedFd tell_to_end(const std::string& socket, MasterEnds when) {
  OwnedFd fd = connect_to(socket);
  if (!fd) return {};
  const MuxKind kind = when == MasterEnds::at_once ? MuxKind::terminate : MuxKind::stop_listening;
  const std::string text = master_protocol::hello() + master_protocol::request(kind);
  if (::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
    return {};
  return fd;
}

std::unique_ptr<Connection> make_master_connection(Reactor& reactor, Master master,
                                                   OwnedFd in_use) {
  return std::make_unique<MasterConnection>(reactor, std::move(master), std::move(in_use));
}

}  // namespace dtool::ssh
