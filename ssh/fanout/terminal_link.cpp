// SPDX-License-Identifier: MIT
#include "ssh/fanout/terminal_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "ssh/fanout/host_program.h"
#include "ssh/fanout/links.h"
#include "ssh/fanout/serving_program.h"
#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"
#include "ssh/machine/files.h"
#include "ssh/machine/process.h"
#include "ssh/machine/reactor.h"
#include "ssh/session/exchange.h"

namespace dtool::ssh {

namespace {

constexpr char kInterruptKey = '\x03';
/// For this long a second Ctrl-c counts as meant, and the notice is drawn again.
constexpr std::chrono::seconds kMeant{5};
/// Output that pauses for this long has not stopped inside a control sequence.
constexpr std::chrono::milliseconds kQuiet{30};
/// For this long an ended command's last output is waited for.
constexpr std::chrono::milliseconds kLastOutput{200};

OwnedFd open_inner(const char* name) {
  OwnedFd opened(::open(name, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  if (opened) return opened;
  throw HostError(Failure::local_program,
                  fmt::format("cannot open a terminal of this machine: {}", std::strerror(errno)));
}

OwnedFd open_master() {
  OwnedFd master = open_inner("/dev/ptmx");
  ::grantpt(master.get());
  ::unlockpt(master.get());
  return master;
}

/// A second terminal between this machine's own and the command that has it, so that a Ctrl-c typed
/// by habit does not interrupt a run: the first one shows what another would do, the second passes.
class TerminalRelay {
 public:
  /// `outer` is in raw mode and outlives this. Throws HostError(local_program) if this machine has
  /// no terminal left.
  TerminalRelay(Reactor& reactor, const Terminal& outer);
  TerminalRelay(const TerminalRelay&) = delete;
  TerminalRelay& operator=(const TerminalRelay&) = delete;

  /// For the command; both descriptors are non-blocking.
  Terminal inner() const;

  /// Gives the inner terminal the outer one's size.
  void resize();

  /// Passes keys on until stop(), or until the outer terminal is closed.
  asio::awaitable<void> pass_keys();
  /// Passes output on until stop(), and then what is left of it.
  asio::awaitable<void> pass_output();
  void stop();

 private:
  void take_interrupts(std::string& keys);
  std::string notice() const;

  Reactor& reactor_;
  Terminal outer_;
  OwnedFd keys_;    ///< the descriptor where the inner terminal takes its keys
  OwnedFd output_;  ///< the descriptor where the inner terminal gives its output
  OwnedFd inner_in_;
  OwnedFd inner_out_;
  Waiter key_waiter_;
  Waiter output_waiter_;
  Deadline passes_until_{};  ///< a Ctrl-c passes until then
  Deadline shown_until_{};   ///< the notice is drawn again after output until then
  bool has_output_ = false;
  bool is_to_be_drawn_ = false;
  bool is_over_ = false;
};

TerminalRelay::TerminalRelay(Reactor& reactor, const Terminal& outer)
    : reactor_(reactor),
      outer_(outer),
      keys_(open_master()),
      output_(::fcntl(keys_.get(), F_DUPFD_CLOEXEC, 0)),
      inner_in_(open_inner(::ptsname(keys_.get()))),
      inner_out_(open_inner(::ptsname(keys_.get()))),
      key_waiter_(reactor, outer.in),
      output_waiter_(reactor, output_.get()) {
  termios raw{};
  if (::tcgetattr(outer_.in, &raw) == 0) ::tcsetattr(inner_in_.get(), TCSANOW, &raw);
  resize();
}

Terminal TerminalRelay::inner() const {
  return {inner_in_.get(), inner_out_.get(), outer_.type, {}};
}

void TerminalRelay::resize() {
  winsize size{};
  if (::ioctl(outer_.out, TIOCGWINSZ, &size) == 0) ::ioctl(keys_.get(), TIOCSWINSZ, &size);
}

/// Removes a Ctrl-c that follows no other one within kMeant, and has the notice drawn.
void TerminalRelay::take_interrupts(std::string& keys) {
  const auto is_first = [this](char key) {
    if (key != kInterruptKey || outer_.on_interrupt.empty()) return false;
    const bool passes = Clock::now() < passes_until_;
    passes_until_ = passes ? Deadline{} : after(kMeant);
    return !passes;
  };
  if (std::erase_if(keys, is_first) == 0) return;
  shown_until_ = after(kMeant);
  is_to_be_drawn_ = true;
  output_waiter_.wake();
}

asio::awaitable<void> TerminalRelay::pass_keys() {
  std::array<char, 4096> bytes;
  while (!is_over_) {
    const ssize_t count = ::read(outer_.in, bytes.data(), bytes.size());
    if (count > 0) {
      std::string keys(bytes.data(), static_cast<std::size_t>(count));
      take_interrupts(keys);
      co_await write_all(reactor_, keys_.get(), keys, kNoDeadline);
    } else if (count < 0 && errno == EAGAIN) {
      co_await key_waiter_.wait(Waiter::For::readable, kNoDeadline);
    } else if (count == 0 || errno != EINTR) {
      co_return;
    }
  }
}

/// In the last columns of the first line, which scrolls away first; the cursor stays where it is.
std::string TerminalRelay::notice() const {
  winsize size{};
  ::ioctl(outer_.out, TIOCGWINSZ, &size);
  const std::string text = (" " + outer_.on_interrupt + " ").substr(0, size.ws_col);
  return fmt::format(
      "\x1b"
      "7\x1b[1;{}H\x1b[7m{}\x1b[0m\x1b"
      "8",
      size.ws_col - text.size() + 1, text);
}

asio::awaitable<void> TerminalRelay::pass_output() {
  std::array<char, 65536> bytes;
  while (true) {
    const ssize_t count = ::read(output_.get(), bytes.data(), bytes.size());
    if (count > 0) {
      const std::string_view view(bytes.data(), static_cast<std::size_t>(count));
      co_await write_all(reactor_, outer_.out, view, kNoDeadline);
      if (!std::exchange(has_output_, true)) shown_until_ = after(kMeant);
      is_to_be_drawn_ = Clock::now() < shown_until_ && !outer_.on_interrupt.empty();
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 || errno != EAGAIN) co_return;
    const Deadline deadline = is_over_          ? after(kLastOutput)
                              : is_to_be_drawn_ ? after(kQuiet)
                                                : kNoDeadline;
    const auto outcome = co_await output_waiter_.wait(Waiter::For::readable, deadline);
    if (outcome != Waiter::Outcome::deadline_passed) continue;
    if (is_over_) co_return;
    co_await write_all(reactor_, outer_.out, notice(), kNoDeadline);
    is_to_be_drawn_ = false;
  }
}

/// Once the command's end of the terminal is closed, reading it ends after the last byte.
void TerminalRelay::stop() {
  is_over_ = true;
  inner_in_.reset();
  inner_out_.reset();
  key_waiter_.wake();
  output_waiter_.wake();
}

}  // namespace

namespace {

struct Size {
  int columns = 80;
  int rows = 24;
};

Size size_of(const Terminal& terminal) {
  winsize size{};
  if (::ioctl(terminal.out, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {size.ws_col, size.ws_row};
}

}  // namespace

class TerminalLink::Work {
 public:
  Work(Host host, const ConnectOptions& options)
      : link_(std::move(host), options), resizings_(link_.reactor().context(), SIGWINCH) {
    await_resizing();
  }

  SingleLink& link() { return link_; }
  asio::awaitable<void> ask(Command request, HostResult& result);
  asio::awaitable<void> run_in_terminal(std::string line, Terminal terminal, HostResult& result);

 private:
  void await_resizing();
  asio::awaitable<bool> write_request(const Command& request, int pipe);
  asio::awaitable<void> run_here(std::string line, const Terminal& terminal, HostResult& result);
  asio::awaitable<void> run_there(std::string line, const Terminal& terminal, HostResult& result);
  asio::awaitable<void> run_in(TerminalRelay& relay, std::string line, HostResult& result);
  asio::awaitable<void> start(ssh_channel channel, std::string line, Terminal terminal);

  SingleLink link_;
  Reactor& reactor_ = link_.reactor();
  asio::signal_set resizings_;
  Connection* connection_ = nullptr;  ///< the latest
  ssh_channel channel_ = nullptr;     ///< the channel while it has the terminal
  TerminalRelay* relay_ = nullptr;    ///< the relay while a command has the terminal
};

void TerminalLink::Work::await_resizing() {
  resizings_.async_wait([this](boost::system::error_code error, int) {
    if (error) return;
    if (relay_ != nullptr) relay_->resize();
    if (channel_ != nullptr) {
      const Size size = size_of(relay_->inner());
      ssh_channel_change_pty_size(channel_, size.columns, size.rows);  // expects no answer
      link_.session()->wake();                                         // it may not be all sent
    }
    await_resizing();
  });
}

asio::awaitable<bool> TerminalLink::Work::write_request(const Command& request, int pipe) {
  const std::string_view input = request.input;
  co_return co_await write_all(reactor_, pipe, input, kNoDeadline);
}

asio::awaitable<void> TerminalLink::Work::ask(Command request, HostResult& result) {
  connection_ = co_await link_.connect();
  HostRequests requests;
  requests.write = [this, &request](int pipe) { return write_request(request, pipe); };
  requests.on_output = [&result](Stream stream, std::string_view bytes) {
    constexpr std::size_t kMostOutput = 1'000'000;
    if (result.out.size() + result.err.size() + bytes.size() > kMostOutput)
      throw HostError(Failure::too_much_output, "its answer has more than 1 MB");
    (stream == Stream::out ? result.out : result.err) += bytes;
  };
  const Deadline deadline = after(std::chrono::minutes(1));
  result.host_key = connection_->host_key();
  ServingProgram program(reactor_, *connection_);
  result.exit_code = co_await program.answer(std::move(requests), result.log_in_said, deadline);
}

asio::awaitable<void> TerminalLink::Work::run_here(std::string line, const Terminal& terminal,
                                                   HostResult& result) {
  Process::Program program;
  program.arguments = {"/bin/sh", "-c", line};
  program.terminal = Process::Terminal::own;
  Process process(reactor_, program, {terminal.in, terminal.out, terminal.out});
  result.exit_code = co_await process.wait(kNoDeadline);
}

asio::awaitable<void> TerminalLink::Work::start(ssh_channel channel, std::string line,
                                                Terminal terminal) {
  const Deadline deadline = after(std::chrono::minutes(1));
  std::function<int()> open = [channel] { return ssh_channel_open_session(channel); };
  int rc = co_await link_.session()->repeat(open, SSH_AGAIN, deadline);
  if (rc != SSH_OK) throw connection_lost(*link_.session());
  const Size size = size_of(terminal);
  std::function<int()> request_terminal = [channel, &terminal, size] {
    return ssh_channel_request_pty_size(channel, terminal.type.c_str(), size.columns, size.rows);
  };
  rc = co_await link_.session()->repeat(request_terminal, SSH_AGAIN, deadline);
  if (rc != SSH_OK) {
    throw HostError(Failure::connection_lost, "the server gives no terminal",
                    "its sshd may have PermitTTY no");
  }
  std::function<int()> request = [channel, &line] {
    return ssh_channel_request_exec(channel, line.c_str());
  };
  rc = co_await link_.session()->repeat(request, SSH_AGAIN, deadline);
  if (rc != SSH_OK) throw connection_lost(*link_.session());
}

asio::awaitable<void> TerminalLink::Work::run_there(std::string line, const Terminal& terminal,
                                                    HostResult& result) {
  CommandStreams streams;
  streams.input_fd = terminal.in;
  streams.output_fd = terminal.out;
  Exchange exchange(reactor_, *link_.session(), std::move(streams), EndsWith::exit_code,
                    kNoDeadline);
  ssh_channel channel = exchange.channel().handle();
  co_await start(channel, line, terminal);
  channel_ = channel;
  std::exception_ptr failure;
  try {
    co_await exchange.run();
  } catch (...) {  // whatever it is, the channel must be forgotten first
    failure = std::current_exception();
  }
  channel_ = nullptr;
  if (failure) std::rethrow_exception(failure);
  result.exit_code = exchange.channel().exit_code();
  if (result.exit_code < 0) throw connection_lost(*link_.session());
}

asio::awaitable<void> TerminalLink::Work::run_in(TerminalRelay& relay, std::string line,
                                                 HostResult& result) {
  const Terminal terminal = relay.inner();
  std::exception_ptr failure;
  relay_ = &relay;
  try {
    if (link_.host().is_local) {
      co_await run_here(line, terminal, result);
    } else if (link_.is_over_program()) {
      const std::string ssh_line = link_.masters().terminal_line(link_.host(), line);
      co_await run_here(ssh_line, terminal, result);
      if (result.exit_code == 255 && !connection_->is_usable())
        throw HostError(Failure::connection_lost, "the connection was lost");
    } else {
      co_await run_there(line, terminal, result);
    }
  } catch (...) {  // whatever it is, the relay must be stopped first
    failure = std::current_exception();
  }
  relay_ = nullptr;
  relay.stop();
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<void> TerminalLink::Work::run_in_terminal(std::string line, Terminal terminal,
                                                          HostResult& result) {
  connection_ = co_await link_.connect();
  TerminalRelay relay(reactor_, terminal);
  TaskGroup tasks(reactor_);
  tasks.spawn(relay.pass_keys());
  tasks.spawn(relay.pass_output());
  tasks.spawn(run_in(relay, line, result));
  co_await tasks.join();
}

TerminalLink::TerminalLink(Host host, const ConnectOptions& options)
    : work_(std::make_unique<Work>(std::move(host), options)) {}

TerminalLink::~TerminalLink() = default;

HostResult TerminalLink::ask(const Command& request) {
  HostResult result;
  return work_->link().finish(work_->ask(request, result), result);
}

HostResult TerminalLink::run_in_terminal(const std::string& line, const Terminal& terminal) {
  HostResult result;
  return work_->link().finish(work_->run_in_terminal(line, terminal, result), result);
}

bool TerminalLink::interrupted() const {
  return work_->link().interrupted();
}

std::string visit_line(const std::string& state_folder, std::vector<std::string> words) {
  words.insert(words.begin(), {"visit", state_folder});
  return host_program_line(Damaged::is_started, words);
}

}  // namespace dtool::ssh
