// SPDX-License-Identifier: MIT
// Runs commands on this machine as an SSH server would: for `local` among the hosts.
#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "ssh/fanout/links.h"
#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"
#include "ssh/machine/files.h"
#include "ssh/machine/process.h"

namespace dtool::ssh {
namespace {

std::string login_shell() {
  const passwd* entry = ::getpwuid(::getuid());
  const bool has_shell = entry != nullptr && entry->pw_shell != nullptr && *entry->pw_shell != '\0';
  return has_shell ? entry->pw_shell : "/bin/sh";
}

/// The caller's descriptors are non-blocking, which a command's standard streams never are: head,
/// cat and shells take EAGAIN for an error.
void make_blocking(int fd) {
  if (fd >= 0) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

class LocalConnection : public Connection {
 public:
  explicit LocalConnection(Reactor& reactor) : reactor_(reactor) {}

  asio::awaitable<int> execute(std::string line, CommandStreams streams,
                               Deadline deadline) override;
  void abandon() override {
    if (running_ != nullptr) running_->tell_to_end();
  }
  void expire() override { is_expired_ = true; }
  bool is_usable() const override { return true; }

 private:
  /// The streams of one command that are pumped by dtool itself; what the pumps share.
  struct RunningCommand {
    CommandStreams streams;
    Deadline deadline;
    Pipe in, out, err;
  };

  asio::awaitable<void> pump_input(RunningCommand& running);
  asio::awaitable<void> pump_output(RunningCommand& running, Stream stream);
  void start_pumps(TaskGroup& pumps, RunningCommand& running);
  asio::awaitable<int> wait(Process& process, Deadline deadline);

  Reactor& reactor_;
  Process* running_ = nullptr;
  bool is_expired_ = false;
};

asio::awaitable<void> LocalConnection::pump_input(RunningCommand& running) {
  const std::string_view view = running.streams.input;
  co_await write_all(reactor_, running.in.writer.get(), view, running.deadline);
  running.in.writer.reset();
}

asio::awaitable<void> LocalConnection::pump_output(RunningCommand& running, Stream stream) {
  // Closed at the end of this function in every case, so that a command whose output is not read
  // does not wait.
  const OwnedFd fd = std::move(stream == Stream::out ? running.out.reader : running.err.reader);
  std::function<void(std::string_view)> on_bytes = [&running, stream](std::string_view bytes) {
    if (running.streams.on_output) running.streams.on_output(stream, bytes);
  };
  co_await read_all(reactor_, fd.get(), on_bytes, &running.deadline);
}

void LocalConnection::start_pumps(TaskGroup& pumps, RunningCommand& running) {
  if (running.in.writer) pumps.spawn(pump_input(running));
  if (running.out.reader) pumps.spawn(pump_output(running, Stream::out));
  if (running.err.reader) pumps.spawn(pump_output(running, Stream::err));
}

/// In slices, since expire() may come meanwhile.
asio::awaitable<int> LocalConnection::wait(Process& process, Deadline deadline) {
  bool has_ended = false;
  while (!has_ended && !is_expired_ && Clock::now() < deadline) {
    const Deadline soon = std::min(deadline, after(std::chrono::milliseconds(200)));
    has_ended = co_await process.ends_before(soon);
  }
  co_return co_await process.wait(Clock::now());
}

asio::awaitable<int> LocalConnection::execute(std::string line, CommandStreams streams,
                                              Deadline deadline) {
  RunningCommand running;
  running.streams = std::move(streams);
  running.deadline = deadline;
  make_blocking(running.streams.input_fd);
  make_blocking(running.streams.output_fd);
  make_blocking(running.streams.error_fd);
  Process::Descriptors descriptors;
  descriptors.in = running.streams.input_fd;
  descriptors.out = running.streams.output_fd;
  if (descriptors.in < 0) {
    running.in = make_pipe(NonBlocking::writer);
    descriptors.in = running.in.reader.get();
  }
  if (descriptors.out < 0) {
    running.out = make_pipe(NonBlocking::reader);
    descriptors.out = running.out.writer.get();
  }
  descriptors.err = running.streams.error_fd;
  if (descriptors.err < 0) {
    running.err = make_pipe(NonBlocking::reader);
    descriptors.err = running.err.writer.get();
  }
  Process::Program program;
  program.arguments = {login_shell(), "-c", line};
  program.folder = home_folder();
  Process process(reactor_, program, descriptors);
  running_ = &process;
  is_expired_ = false;
  if (running.streams.on_input_taken) running.streams.on_input_taken();
  running.in.reader.reset();
  running.out.writer.reset();
  running.err.writer.reset();
  TaskGroup pumps(reactor_);
  start_pumps(pumps, running);

  int exit_code = -1;
  std::exception_ptr failure;
  try {
    exit_code = co_await wait(process, deadline);
  } catch (...) {  // whatever it is, the pumps must end first
    failure = std::current_exception();
  }
  running_ = nullptr;
  // A background process may keep the output open: what it has not said five seconds later is not
  // waited for.
  running.deadline = after(std::chrono::seconds(failure ? 0 : 5));
  co_await pumps.join();
  if (failure) std::rethrow_exception(failure);
  co_return exit_code;
}

}  // namespace

std::unique_ptr<Connection> make_local_connection(Reactor& reactor) {
  return std::make_unique<LocalConnection>(reactor);
}

}  // namespace dtool::ssh
