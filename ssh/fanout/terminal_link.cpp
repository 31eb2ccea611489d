// SPDX-License-Identifier: MIT
#include "ssh/fanout/terminal_link.h"

#include <signal.h>
#include <sys/ioctl.h>

#include <exception>
#include <functional>
#include <utility>

#include "ssh/fanout/host_program.h"
#include "ssh/fanout/links.h"
#include "ssh/fanout/serving_program.h"
#include "ssh/fanout/terminal_relay.h"
#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"
#include "ssh/machine/process.h"
#include "ssh/session/exchange.h"

namespace dtool::ssh {
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
