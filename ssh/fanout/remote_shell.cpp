// SPDX-License-Identifier: MIT
#include "ssh/fanout/remote_shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ssh/fanout/fleet.h"
#include "ssh/host_error.h"
#include "ssh/kept/kept_connection.h"
#include "ssh/machine/fd_bytes.h"
#include "ssh/machine/process.h"

namespace dtool::ssh {

namespace {

/// Descriptor of the socket in the child; the variable tells remote_shell() that it is there.
constexpr int kSocket = 3;
constexpr const char* kVariable = "DTOOL_REMOTE_SHELL_SOCKET";
constexpr std::size_t kLongestCommand = 131'072;
constexpr auto kLongestGoodbye = std::chrono::seconds(10);

/// The content of remote_shell()'s request: a command line, and its streams.
struct Request {
  std::string line;
  OwnedFd in;
  OwnedFd out;
};

/// As receive_message. A message without both streams counts as the end of the program.
Received receive_request(int socket, Request& request) {
  Message message;
  const Received received = receive_message(socket, message);
  if (received != Received::message) return received;
  if (message.fds.size() != 2) return Received::end;
  for (const OwnedFd& fd : message.fds) make_non_blocking(fd.get());
  request = Request{message.bytes, std::move(message.fds[0]), std::move(message.fds[1])};
  return Received::message;
}

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

/// rsync cuts its remote shell at blanks, and knows quotes.
std::string remote_shell_words() {
  const std::string program = own_program();
  const bool has_blank = program.find_first_of(" '") != program.npos;
  return fmt::format(fmt::runtime(has_blank ? "\"{}\" remote_shell" : "{} remote_shell"), program);
}

/// One run of a local program: its output, and the remote shell that it may start.
struct LocalRun {
  Reactor& reactor;
  Connection& connection;
  std::function<void(Stream, std::string_view)> on_output;
  Deadline deadline;
  Pipe in, out, err;
  OwnedFd socket;
  bool is_served = false;
};

asio::awaitable<void> pump(LocalRun& run, Stream stream) {
  // Closed at the end of this function in every case, so that a program whose output is not read
  // does not wait.
  const OwnedFd fd = std::move(stream == Stream::out ? run.out.reader : run.err.reader);
  std::function<void(std::string_view)> on_bytes = [&run, stream](std::string_view bytes) {
    run.on_output(stream, bytes);
  };
  co_await read_all(run.reactor, fd.get(), on_bytes, &run.deadline);
}

asio::awaitable<void> feed(LocalRun& run, std::string input) {
  const std::string_view view = input;
  co_await write_all(run.reactor, run.in.writer.get(), view, run.deadline);
  run.in.writer.reset();
}

asio::awaitable<void> serve(LocalRun& run) {
  std::optional<Request> request{std::in_place};
  Waiter waiter(run.reactor, run.socket.get());
  Received received = Received::nothing;
  // In slices: the deadline moves when the program has ended, and what it left running may hold the
  // socket.
  while (received == Received::nothing && Clock::now() < run.deadline) {
    const Deadline soon = std::min(run.deadline, after(std::chrono::milliseconds(200)));
    co_await waiter.wait(Waiter::For::readable, soon);
    received = receive_request(run.socket.get(), *request);
  }
  if (received != Received::message) {
    run.is_served = true;
    co_return;
  }
  CommandStreams streams;
  streams.input_fd = request->in.get();
  streams.output_fd = request->out.get();
  streams.on_output = run.on_output;
  streams.shell_output = ShellOutput::leave_out;  // rsync would take it for its own
  std::int32_t exit_code = 255;
  std::exception_ptr failure;
  try {
    exit_code = co_await run.connection.execute(request->line, streams, run.deadline);
  } catch (const HostError&) {
    failure = std::current_exception();
  }
  request.reset();  // the program sees the end of its streams before the exit code
  ::send(run.socket.get(), &exit_code, sizeof exit_code, MSG_NOSIGNAL);
  run.is_served = true;
  if (failure) std::rethrow_exception(failure);
}

/// The program has ended, and its counterpart on the host does so, unless that waits for a disk
/// that does not answer. Whether it had to be left.
asio::awaitable<bool> leave(LocalRun& run) {
  const Deadline latest = after(kLongestGoodbye);
  while (!run.is_served && Clock::now() < latest)
    co_await run.reactor.sleep(std::chrono::milliseconds(20));
  if (!run.is_served) run.connection.abandon();
  co_return !run.is_served;
}

}  // namespace

asio::awaitable<int> run_local_program(Reactor& reactor, Connection& connection,
                                       LocalProgram program,
                                       std::function<void(Stream, std::string_view)> on_output,
                                       Deadline deadline) {
  auto ends = make_sockets(SOCK_SEQPACKET, Failure::local_program);
  LocalRun run{reactor,
               connection,
               std::move(on_output),
               deadline,
               make_pipe(NonBlocking::writer),
               make_pipe(NonBlocking::reader),
               make_pipe(NonBlocking::reader),
               std::move(ends.first)};
  OwnedFd child_socket = std::move(ends.second);
  Process::Program plan{program.arguments, {fmt::format("{}={}", kVariable, kSocket)}, {}};
  for (std::string& word : plan.arguments) {
    if (word == kRemoteShell) word = remote_shell_words();
  }
  const Process::Descriptors descriptors{run.in.reader.get(), run.out.writer.get(),
                                         run.err.writer.get(), child_socket.get()};
  Process process(reactor, plan, descriptors);
  child_socket.reset();
  run.in.reader.reset();
  run.out.writer.reset();
  run.err.writer.reset();

  TaskGroup group(reactor);
  group.spawn(feed(run, program.input));
  group.spawn(pump(run, Stream::out));
  group.spawn(pump(run, Stream::err));
  group.spawn(serve(run));
  int exit_code = -1;
  std::exception_ptr failure;
  try {
    exit_code = co_await process.wait(deadline);
  } catch (...) {  // whatever it is, the group must end first
    failure = std::current_exception();
  }
  run.deadline = after(std::chrono::seconds(1));
  bool is_left = false;
  try {
    is_left = co_await leave(run);
  } catch (const HostError&) {
    failure = std::current_exception();
  }
  try {
    co_await group.join();  // a connection that was lost is the better explanation
  } catch (const HostError&) {
    if (!is_left) failure = std::current_exception();
  }
  if (failure) std::rethrow_exception(failure);
  co_return exit_code;
}

int remote_shell(const std::vector<std::string>& words) {
  constexpr int kNoConnection = 255;
  if (words.size() < 2 || std::getenv(kVariable) == nullptr) return kNoConnection;
  // The text as ssh makes it: the host, then words that the remote shell reads as one line.
  std::string line;
  for (std::size_t i = 1; i < words.size(); ++i) line += (i > 1 ? " " : "") + words[i];
  if (line.size() > kLongestCommand || !send_message(kSocket, line, {STDIN_FILENO, STDOUT_FILENO}))
    return kNoConnection;
  // Ours are copies: the reader must see the end when the connection closes its own.
  ::close(STDIN_FILENO);
  ::close(STDOUT_FILENO);
  std::int32_t exit_code = kNoConnection;
  if (::recv(kSocket, &exit_code, sizeof exit_code, 0) != sizeof exit_code) return kNoConnection;
  return exit_code;
}

namespace {

/// How often a host that has all there is looks for more, and what makes the bytes for room.
constexpr std::chrono::milliseconds kLookAgain{5};
/// How often a full pipe is looked at for a deadline that was moved.
constexpr std::chrono::milliseconds kSlice{200};

OwnedFd make_file() {
  OwnedFd file = file_without_name();
  if (file) return file;
  throw HostError(Failure::local_program,
                  fmt::format("cannot make a file in /var/tmp: {}", std::strerror(errno)));
}

bool has_reader(int pipe) {
  pollfd end{pipe, 0, 0};
  return ::poll(&end, 1, 0) == 0;
}

off_t size_of(int fd) {
  struct stat status {};
  ::fstat(fd, &status);
  return status.st_size;
}

}  // namespace

SharedOutput::SharedOutput(Reactor& reactor, const SharedBytes& bytes, std::uint64_t most_unsent)
    : reactor_(reactor),
      file_(make_file()),
      on_whole_(bytes.on_whole),
      most_unsent_(most_unsent),
      thread_([this, maker = bytes.make] { make(maker); }) {}

SharedOutput::~SharedOutput() {
  is_unwanted_ = true;
  thread_.join();
}

void SharedOutput::make(const std::function<void(const SharedBytes::Write&)>& maker) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);  // they are the other thread's
  std::uint64_t made = 0;
  try {
    maker([this, &made](std::string_view bytes) {
      wait_for_room(made += bytes.size());
      if (is_unwanted_) throw std::runtime_error("no host needs the rest of it");
      if (on_whole_) digest_.add(bytes);
      while (!bytes.empty()) {
        const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
        if (count < 0 && errno != EINTR)
          throw std::runtime_error(
              fmt::format("cannot write a file in /var/tmp: {}", std::strerror(errno)));
        bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      }
    });
  } catch (const std::exception& error) {
    error_ = error.what();
  }
  is_made_ = true;
}

void SharedOutput::wait_for_room(std::uint64_t made) const {
  while (most_unsent_ > 0 && !is_unwanted_ && made > let_go_ + most_unsent_)
    std::this_thread::sleep_for(kLookAgain);
}

void SharedOutput::let_go(std::uint64_t at) {
  // Pipes hold pages of the file, not copies: a hole near them would put zeros into what was sent.
  constexpr std::uint64_t kInPipes = 1U << 20U, kStep = 4U << 20U;
  at = std::min(at, static_cast<std::uint64_t>(size_of(file_.get())));
  at = at < kInPipes ? 0 : (at - kInPipes) / kStep * kStep;
  if (at == let_go_) return;
  // A file system without holes keeps them.
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(let_go_),
              static_cast<off_t>(at - let_go_));
  let_go_ = at;
}

void SharedOutput::tell_when_made() {
  if (!is_made_ || !error_.empty() || !on_whole_) return;
  const auto on_whole = std::exchange(on_whole_, nullptr);
  on_whole(static_cast<std::uint64_t>(size_of(file_.get())), digest_.hex());
}

void SharedOutput::expect_success() const {
  if (!error_.empty()) throw HostError(Failure::local_program, error_);
}

Transferred SharedOutput::transferred(off_t at) const {
  Transferred so_far{static_cast<std::uint64_t>(at)};
  if (is_made_) so_far.all = static_cast<std::uint64_t>(size_of(file_.get()));
  return so_far;
}

/// False if the reader has gone, or the file cannot be read.
asio::awaitable<bool> SharedOutput::send_what_is_there(Waiter& waiter, int fd, off_t& at,
                                                       const Deadline* deadline) {
  constexpr std::size_t kChunk = 65'536;  // the bytes that a pipe holds
  const ssize_t count = ::sendfile(fd, file_.get(), &at, kChunk);
  if (count >= 0 || errno == EINTR) co_return true;
  if (errno != EAGAIN) co_return false;
  const Deadline soon = std::min(*deadline, after(kSlice));
  co_await waiter.wait(Waiter::For::writable, soon);
  co_return Clock::now() < *deadline;
}

asio::awaitable<bool> SharedOutput::send(int fd, std::string_view before, const Deadline* deadline,
                                         std::function<void(const Transferred&)> on_sent) {
  const bool is_taken = co_await write_all(reactor_, fd, before, *deadline);
  if (!is_taken) co_return false;
  Waiter waiter(reactor_, fd);
  off_t at = 0;
  for (;;) {
    const bool is_made = is_made_;  // this is read before the size: nothing is added after it
    while (at < size_of(file_.get())) {
      // A file that could not be made whole is of no good to anybody.
      if (is_made_) expect_success();
      const off_t earlier = at;
      const bool goes_on = co_await send_what_is_there(waiter, fd, at, deadline);
      if (!goes_on) co_return false;
      tell_when_made();
      if (at != earlier) on_sent(transferred(at));
    }
    tell_when_made();
    if (is_made) {
      expect_success();
      on_sent(transferred(at));  // this call tells that this is all
      co_return true;
    }
    if (Clock::now() >= *deadline || !has_reader(fd)) co_return false;
    co_await reactor_.sleep(kLookAgain);
  }
}

SharedOutput& SharedOutputs::of(const std::shared_ptr<const SharedBytes>& bytes) {
  // Long rounds share many of them, one after another: what no task can name again goes.
  std::erase_if(outputs_, [](const auto& each) { return each.first.use_count() == 1; });
  std::unique_ptr<SharedOutput>& output = outputs_[bytes];
  const std::uint64_t most_unsent = limits_ == Limits::yes ? bytes->most_unsent : 0;
  if (output == nullptr) output = std::make_unique<SharedOutput>(reactor_, *bytes, most_unsent);
  return *output;
}

void SharedOutputs::make_soon(const std::shared_ptr<const SharedBytes>& bytes) {
  try {
    of(bytes);
  } catch (const std::exception&) {
    // The command that needs it says so.
  }
}

void SharedOutputs::note_taken(std::size_t task, std::uint64_t bytes) {
  taken_[task] = bytes;
  for (const auto& [shared, output] : outputs_)
    if (shared->most_unsent > 0 && output != nullptr)
      output->let_go(*std::ranges::min_element(taken_));
}

}  // namespace dtool::ssh
