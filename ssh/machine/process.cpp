#include "ssh/machine/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "ssh/host_error.h"

extern char** environ;  // NOLINT: POSIX's name

namespace dtool::ssh {
namespace {

constexpr int kExtra = 3;
constexpr std::chrono::milliseconds kLookAgain{10};

/// posix_spawn's actions and attributes with an owner.
struct SpawnPlan {
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void give(int fd, int as, int open_flags) {
    if (fd < 0) {
      ::posix_spawn_file_actions_addopen(&actions, as, "/dev/null", open_flags, 0);
    } else {
      ::posix_spawn_file_actions_adddup2(&actions, fd, as);
    }
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

/// The child gets default signals, none blocked: dtool's own handling of SIGPIPE and SIGINT is not
/// its child's.
void reset_signals(posix_spawnattr_t& attributes, Process::Terminal terminal) {
  sigset_t all;
  sigset_t none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  // The leader of a session leads a process group as well.
  const int group =
      terminal == Process::Terminal::none ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
  ::posix_spawnattr_setflags(
      &attributes, static_cast<short>(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | group));
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> with_environment(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
  return all;
}

/// posix_spawn tells neither apart: the folder in which a program was to start, and the program.
void require_folder(const std::string& folder) {
  if (folder.empty() || ::access(folder.c_str(), X_OK) == 0) return;
  throw HostError(
      Failure::local_program,
      fmt::format("cannot enter the folder {} on this machine: {}", folder, std::strerror(errno)));
}

}  // namespace

Process::Process(Reactor& reactor, const Program& program, Descriptors descriptors)
    : reactor_(reactor) {
  const std::vector<std::string>& arguments = program.arguments;
  SpawnPlan plan;
  plan.give(descriptors.in, STDIN_FILENO, O_RDONLY);
  plan.give(descriptors.out, STDOUT_FILENO, O_WRONLY);
  plan.give(descriptors.err, STDERR_FILENO, O_WRONLY);
  if (descriptors.extra >= 0) plan.give(descriptors.extra, kExtra, 0);
  // Descriptors that dtool itself inherited without close-on-exec are not passed to the child.
  const int first_unnamed = descriptors.extra >= 0 ? kExtra + 1 : kExtra;
  ::posix_spawn_file_actions_addclosefrom_np(&plan.actions, first_unnamed);
  if (!program.folder.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&plan.actions, program.folder.c_str());
  }
  reset_signals(plan.attributes, program.terminal);

  const std::vector<std::string> variables = with_environment(program.environment);
  const int error =
      ::posix_spawnp(&pid_, arguments.front().c_str(), &plan.actions, &plan.attributes,
                     pointers(arguments).data(), pointers(variables).data());
  if (error != 0) {
    require_folder(program.folder);
    throw HostError(Failure::local_program, fmt::format("cannot run {} on this machine: {}",
                                                        arguments.front(), std::strerror(error)));
  }
  ends_with_us_ = EndsWithUs(-pid_);
  // By number: glibc 2.36 declares pidfd_open without extern "C". Close-on-exec by itself.
  pidfd_ = OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

/// TERM first, to all of the group: rsync then keeps what it has of a file for the next time, in a
/// process that its parent does not wait for.
Process::~Process() {
  if (is_reaped_) return;
  ::kill(-pid_, SIGTERM);
  const Deadline grace = end_of_childrens_grace();
  while (Clock::now() < grace && (!reap() || ::kill(-pid_, 0) == 0)) {
    std::this_thread::sleep_for(kLookAgain);
  }
  ::kill(-pid_, SIGKILL);
  if (!is_reaped_) ::waitpid(pid_, nullptr, 0);
}

void Process::tell_to_end() {
  if (!is_reaped_) ::kill(-pid_, SIGTERM);
}

void Process::end(std::chrono::milliseconds grace) {
  tell_to_end();
  const Deadline latest = after(grace);
  while (!reap() && Clock::now() < latest)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::kill(-pid_, SIGKILL);
  if (is_reaped_) return;
  int status = 0;
  ::waitpid(pid_, &status, 0);
  is_reaped_ = true;
  exit_code_ = 128 + SIGKILL;
}

bool Process::reap() {
  int status = 0;
  if (is_reaped_ || ::waitpid(pid_, &status, WNOHANG) != pid_) return is_reaped_;
  is_reaped_ = true;
  ends_with_us_ = EndsWithUs();
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return true;
}

std::optional<int> Process::exit_code() {
  if (!reap()) return std::nullopt;
  return exit_code_;
}

asio::awaitable<bool> Process::ends_before(Deadline deadline) {
  if (!pidfd_) {  // Linux before 5.3 has none, RHEL 8's among them
    while (!reap() && Clock::now() < deadline) co_await reactor_.sleep(kLookAgain);
    co_return reap();
  }
  Waiter waiter(reactor_, pidfd_.get());
  while (!reap()) {
    const auto outcome = co_await waiter.wait(Waiter::For::readable, deadline);
    if (outcome == Waiter::Outcome::deadline_passed) co_return reap();
  }
  co_return true;
}

asio::awaitable<int> Process::wait(Deadline deadline) {
  if (co_await ends_before(deadline)) co_return exit_code_;
  ::kill(-pid_, SIGTERM);
  const Deadline grace = after(std::chrono::seconds(1));
  if (!co_await ends_before(grace)) ::kill(-pid_, SIGKILL);
  throw command_timed_out();
}

Pipe make_pipe(NonBlocking end) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) {
    throw std::runtime_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  Pipe pipe{OwnedFd(fds[0]), OwnedFd(fds[1])};
  if (end != NonBlocking::writer) make_non_blocking(fds[0]);
  if (end != NonBlocking::reader) make_non_blocking(fds[1]);
  return pipe;
}

}  // namespace dtool::ssh
