// SPDX-License-Identifier: MIT
#include "trainer/environments/environment_worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "killfiles/printable.h"
#include "trainer/data/data_settings.h"
#include "trainer/environments/dtool_env.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using host::Descriptor;

constexpr std::size_t kKeptOutput = 2048;
constexpr auto kGrace = std::chrono::seconds(2);

[[noreturn]] void fail_here(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// The two ends of what a system call has made.
std::pair<Descriptor, Descriptor> both_ends(int failed, const int (&ends)[2]) {
  if (failed != 0) fail_here("cannot make a socket and a pipe for environments");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Descriptor new_memory(const char* name) {
  Descriptor memory(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) fail_here("cannot make memory for environments");
  return memory;
}

/// dtool_env.py as a file without a name, so that it is wherever the trainer is.
Descriptor memory_with_program() {
  Descriptor memory = new_memory("dtool_env.py");
  const std::string_view text = environments::kDtool_env;
  if (write(memory.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    fail_here("cannot write dtool_env.py into memory");
  }
  return memory;
}

/// The program and its arguments, with env(1) before them: it sets variables for the worker alone.
std::vector<std::string> command_line(const WorkerSettings& settings, int doorbell, int memory,
                                      int program) {
  // Many workers share the cores; the rank's number of threads is not for each of them.
  std::vector<std::string> words = {"env", fmt::format("DTOOL_ENVIRONMENT_DOORBELL={}", doorbell),
                                    fmt::format("DTOOL_ENVIRONMENT_MEMORY={}", memory),
                                    "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"};
  words.insert(words.end(), settings.command.begin(), settings.command.end());
  if (!settings.command.empty()) return words;
  // Not by a path, which the processes of Python's multiprocessing would look for in vain.
  words.insert(words.end(), {settings.python, "-u", "-c",
                             fmt::format("import os; exec(compile(os.pread({}, 1 << 20, 0), "
                                         "'dtool_env.py', 'exec'))",
                                         program),
                             settings.name});  // for ps(1)
  return words;
}

/// Between fork and exec, where other threads may have held any lock: system calls only.
[[noreturn]] void become_worker(char** arguments, pid_t parent, std::array<int, 3> inherited,
                                int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  setpgid(0, 0);                      // what it starts ends with it
  // A request to the trainer is not one to its environments, which it still needs to answer it.
  for (const int each : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGQUIT}) signal(each, SIG_IGN);
  signal(SIGPIPE, SIG_DFL);
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  for (const int each : inherited) {
    if (each >= 0) fcntl(each, F_SETFD, 0);
  }
  execvp(arguments[0], arguments);
  _exit(127);
}

/// Waits for the end of `life`, which comes with the rank's, whatever ends that; then all that the
/// worker has started ends. A program of its own, since a copy of this process would keep its
/// memory. System calls only, as above.
[[noreturn]] void become_keeper(pid_t group, int life) {
  setpgid(0, group);
  dup2(life, STDIN_FILENO);
  execl("/bin/sh", "sh", "-c", "read -r end; kill -KILL 0", static_cast<char*>(nullptr));
  _exit(127);
}

void await_end(pid_t process) {
  while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

EnvironmentWorker::EnvironmentWorker(const WorkerSettings& settings) {
  int ends[2];
  auto [ours, bell] = both_ends(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), ends);
  auto [heard, output] = both_ends(pipe2(ends, O_CLOEXEC), ends);
  auto [end, life] = both_ends(pipe2(ends, O_CLOEXEC), ends);
  fcntl(heard.get(), F_SETFL, O_NONBLOCK);
  shared_ = new_memory("dtool environments");
  const Descriptor program = settings.command.empty() ? memory_with_program() : Descriptor();
  std::vector<std::string> words = command_line(settings, bell.get(), shared_.get(), program.get());
  std::vector<char*> arguments;
  for (std::string& each : words) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0)
    become_worker(arguments.data(), parent, {bell.get(), shared_.get(), program.get()},
                  output.get());
  if (process_ < 0) fail_here("cannot start a process for environments");
  setpgid(process_, process_);
  keeper_ = fork();
  if (keeper_ == 0) become_keeper(process_, end.get());
  ended_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process_, 0)));  // from Linux 5.3 on
  life_ = std::move(life);
  doorbell_ = std::move(ours);
  output_ = std::move(heard);
}

EnvironmentWorker::~EnvironmentWorker() {
  hang_up();
  siginfo_t ended{};
  const auto has_ended = [&] {
    ended.si_pid = 0;
    return waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           ended.si_pid != 0;
  };
  while (!has_ended() && Clock::now() < killed_at_) {
    pollfd waited{output_.get(), POLLIN, 0};
    poll(&waited, 1, 5);
    forward_output();
  }
  forward_output();
  kill(-process_, SIGKILL);  // before its number is free for others
  kill(process_, SIGKILL);
  await_end(process_);
  if (keeper_ > 0) {
    kill(keeper_, SIGKILL);
    await_end(keeper_);
  }
  if (memory_ != nullptr) munmap(memory_, size_);
}

bool EnvironmentWorker::has_spoken() const {
  char byte = 0;
  return !heard_.empty() || recv(doorbell_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void EnvironmentWorker::hang_up() {
  if (!doorbell_) return;
  doorbell_.reset();
  killed_at_ = Clock::now() + kGrace;
}

std::byte* EnvironmentWorker::share(std::size_t size) {
  // Takes the pages now: without them, a write to this memory would end the process.
  do {
    errno = posix_fallocate(shared_.get(), 0, static_cast<off_t>(size));
  } while (errno == EINTR);
  void* mapped = errno != 0
                     ? MAP_FAILED
                     : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, shared_.get(), 0);
  if (mapped == MAP_FAILED ||
      fcntl(shared_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    fail_here("cannot share memory with environments");
  }
  size_ = size;
  return memory_ = static_cast<std::byte*>(mapped);
}

void EnvironmentWorker::say(std::string_view bytes) {
  while (!bytes.empty() && doorbell_) {
    const ssize_t sent = send(doorbell_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;  // it is gone, and the next `hear` says why
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string EnvironmentWorker::hear(Deadline deadline) {
  std::array<char, 4096> piece;
  for (;;) {
    if (const auto end = heard_.find('\n'); end != heard_.npos) {
      std::string line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return line;
    }
    if (heard_.size() > kLongestWorkerLine) fail("wrote more than is an answer to its doorbell");
    heard_.append(piece.data(), hear(piece.data(), piece.size(), deadline));
  }
}

std::size_t EnvironmentWorker::hear(char* into, std::size_t size, Deadline deadline) {
  for (bool has_ended = false;; has_ended = wait_for_something(deadline)) {
    const ssize_t heard = recv(doorbell_.get(), into, size, MSG_DONTWAIT);
    if (heard > 0) return static_cast<std::size_t>(heard);
    if (heard == 0 || (errno != EAGAIN && errno != EINTR) || has_ended) tell_death();
  }
}

/// Whether the process has ended: one that it started may still have the doorbell open.
bool EnvironmentWorker::wait_for_something(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  if (left <= 0) fail("has not answered in time");
  std::array<pollfd, 3> waited = {pollfd{doorbell_.get(), POLLIN, 0},
                                  pollfd{output_.get(), POLLIN, 0},
                                  pollfd{ended_.get(), POLLIN, 0}};
  // A signal interrupts it, and is for others to answer.
  poll(waited.data(), waited.size(), static_cast<int>(std::min<std::int64_t>(left, 1'000'000)));
  if (waited[1].revents != 0) forward_output();
  return waited[2].revents != 0;
}

void EnvironmentWorker::forward_output() {
  std::array<char, 4096> piece;
  // Not for ever: a worker may write faster than it can be read.
  for (int pieces = 0; pieces < 64 && output_; ++pieces) {
    const ssize_t size = ::read(output_.get(), piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return;
    if (size == 0) return output_.reset();
    const std::string_view text(piece.data(), static_cast<std::size_t>(size));
    std::fwrite(text.data(), 1, text.size(), stderr);
    output_tail_ += text;
    if (output_tail_.size() > kKeptOutput) {
      output_tail_.erase(0, output_tail_.size() - kKeptOutput);
    }
  }
}

/// Says what its last line of output was, too.
void EnvironmentWorker::fail(const std::string& how) {
  forward_output();
  constexpr std::string_view kBlank = " \t\r\n";
  std::string words = output_tail_.substr(0, output_tail_.find_last_not_of(kBlank) + 1);
  words.erase(0, words.find_last_of("\r\n") + 1);  // all of a single line stay: npos + 1 is 0
  throw WorkerFailed(fmt::format("{} (process {}){}{}", how, process_,
                                 words.empty() ? "" : "; its last words: ",
                                 killfiles::printable(words, killfiles::Allowed::nothing)));
}

/// The end of its words is seen a little before that of the process.
void EnvironmentWorker::tell_death() {
  siginfo_t ended{};
  for (int i = 0; ended.si_pid == 0 && i < 2000; ++i) {  // milliseconds
    if (i > 0) poll(nullptr, 0, 1);
    waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT);
  }
  if (ended.si_pid == 0) fail("closed its doorbell");
  if (ended.si_code == CLD_EXITED) fail(fmt::format("ended with exit code {}", ended.si_status));
  fail(fmt::format("was killed by signal {} ({})", ended.si_status, strsignal(ended.si_status)));
}

/// The worker's doorbell brings the arrays.
ByteSource open_iterator(const DataSettings& settings, const std::string& set, int arrays) {
  constexpr const char* kGiveArrays = R"(import importlib, os, socket, sys, types
import numpy
bell = socket.socket(fileno=int(os.environ["DTOOL_ENVIRONMENT_DOORBELL"]))
module, _, name = sys.argv[1].partition(":")
batches = getattr(importlib.import_module(module), name)(sys.argv[2])
batches = [each if isinstance(each, (tuple, list)) else (each,) for each in batches]
for i in range(int(sys.argv[3])):
    array = numpy.ascontiguousarray(numpy.concatenate([each[i] for each in batches]))
    numpy.save(types.SimpleNamespace(write=bell.sendall), array, allow_pickle=False)
)";
  WorkerSettings worker;
  worker.command = {settings.python,          "-u", "-c", kGiveArrays, settings.iterator, set,
                    fmt::format("{}", arrays)};
  const auto process = std::make_shared<EnvironmentWorker>(worker);
  return [process, function = settings.iterator](void* into, std::size_t size) {
    auto* at = static_cast<char*>(into);
    try {  // it may take as long as it needs
      for (auto* const end = at + size; at < end;)
        at += process->hear(at, static_cast<std::size_t>(end - at), Clock::time_point::max());
    } catch (const WorkerFailed& failure) {
      throw UsageError(
          fmt::format("data.iterator: the process of {} {}", function, failure.what()),
          "data.python names the Python that has NumPy and the module, on every machine");
    }
  };
}

}  // namespace dtool::trainer
