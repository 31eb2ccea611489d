// SPDX-License-Identifier: MIT
#include "ssh/machine/process.h"

// Boost 1.81 forgets these where it uses std::filesystem, which needs no library of Boost's.
#include <boost/optional.hpp>
#include <boost/type_traits/decay.hpp>
#include <boost/type_traits/remove_pointer.hpp>

#define BOOST_PROCESS_USE_STD_FS
#include <boost/process/v2/environment.hpp>
#include <boost/process/v2/posix/vfork_launcher.hpp>
#include <boost/process/v2/process.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "ssh/host_error.h"

extern char** environ;  // NOLINT: POSIX's name

namespace dtool::ssh {
namespace {

namespace boost_process = boost::process::v2;
using boost::system::error_code;

constexpr int kExtra = 3;
constexpr std::chrono::milliseconds kLookAgain{10};

/// No signal is handled in this process while it lives: in a child that is not the program yet,
/// dtool's handlers would answer for it.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsWait() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_;
};

/// What the child does before it becomes the program. It shares this process's memory until then,
/// and allocates nothing.
struct ChildSetUp {
  using Launcher = boost_process::posix::default_launcher;
  using Path = std::filesystem::path;

  error_code on_exec_setup(Launcher&, const Path&, const char* const*) const {
    const bool is_set_up =
        enter_group() && take(descriptors.in, STDIN_FILENO, O_RDONLY) &&
        take(descriptors.out, STDOUT_FILENO, O_WRONLY) &&
        take(descriptors.err, STDERR_FILENO, O_WRONLY) &&
        (descriptors.extra < 0 || take(descriptors.extra, kExtra, 0)) &&
        (terminal != Process::Terminal::own || ::ioctl(STDIN_FILENO, TIOCSCTTY, 0) == 0) &&
        (folder == nullptr || ::chdir(folder) == 0);
    if (!is_set_up) return {errno, boost::system::system_category()};
    // What dtool itself inherited without close-on-exec is not its child's either.
    ::closefrom(descriptors.extra >= 0 ? kExtra + 1 : kExtra);
    // dtool's own handling of SIGPIPE and SIGINT is not its child's.
    for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    return {};
  }

  /// The launcher's exit() would do here what dtool does when it ends. Boost 1.81 asks for another
  /// number of parameters than it gives.
  template <typename... Whatever>
  void on_exec_error(Whatever&&...) const {
    ::_exit(127);
  }

  bool enter_group() const {
    if (terminal == Process::Terminal::shared) return ::setpgid(0, 0) == 0;
    return ::setsid() >= 0;  // the leader of a session leads a process group as well
  }

  static bool take(int fd, int as, int open_flags) {
    const int given = fd >= 0 ? fd : ::open("/dev/null", open_flags | O_CLOEXEC);
    if (given == as) return ::fcntl(as, F_SETFD, 0) == 0;
    return ::dup2(given, as) >= 0;
  }

  Process::Terminal terminal;
  Process::Descriptors descriptors;
  const char* folder;  ///< null: this process's
};

std::vector<std::string> environment_of(const Process::Program& program) {
  std::vector<std::string> all = program.environment;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    const auto begins_it = [&](const std::string& start) { return variable.starts_with(start); };
    if (std::ranges::none_of(program.left_out, begins_it)) all.emplace_back(variable);
  }
  return all;
}

std::vector<const char*> pointers(const std::vector<std::string>& words) {
  std::vector<const char*> result;
  for (const std::string& word : words) result.push_back(word.c_str());
  result.push_back(nullptr);
  return result;
}

/// One error for both: a folder in which a program was to start, and the program.
void require_folder(const std::string& folder) {
  if (folder.empty() || ::access(folder.c_str(), X_OK) == 0) return;
  throw HostError(
      Failure::local_program,
      fmt::format("cannot enter the folder {} on this machine: {}", folder, std::strerror(errno)));
}

/// Returns the child's number. Of Boost.Process the launcher alone: its async_wait() stops the
/// event loop where Asio wakes it without reason (docs/decisions.md).
pid_t launch(const Process::Program& program, const Process::Descriptors& descriptors) {
  const ChildSetUp set_up{program.terminal, descriptors,
                          program.folder.empty() ? nullptr : program.folder.c_str()};
  const std::vector<std::string> variables = environment_of(program);
  const std::vector<const char*> variable_pointers = pointers(variables);
  const std::filesystem::path file = find_executable(program.arguments.front());

  asio::io_context apart;  // the launcher has a context close and open its descriptors in the child
  boost_process::posix::vfork_launcher launcher;
  launcher.env = variable_pointers.data();
  if (descriptors.extra >= 0) launcher.fd_whitelist.push_back(kExtra);
  error_code error;
  try {
    const SignalsWait signals_wait;
    launcher(apart.get_executor(), error, file, pointers(program.arguments).data(), set_up)
        .detach();
  } catch (const boost::system::system_error&) {
    // Linux before 5.3 has no pidfd, with which the launcher wants to end. The child runs.
    if (launcher.pid < 0) throw;
  }
  if (!error) return launcher.pid;
  if (launcher.pid > 0) ::waitpid(launcher.pid, nullptr, 0);
  require_folder(program.folder);
  throw HostError(Failure::local_program,
                  fmt::format("cannot run {} on this machine: {}", program.arguments.front(),
                              std::strerror(error.value())));
}

}  // namespace

Process::Process(Reactor& reactor, const Program& program, Descriptors descriptors)
    : reactor_(reactor), pid_(launch(program, descriptors)) {
  const bool has_terminal = program.terminal == Terminal::own;
  told_ = has_terminal ? pid_ : -pid_;
  if (has_terminal) ending_ = SIGHUP;
  ends_with_us_ = EndsWithUs(told_);
  // By number: glibc 2.36 declares pidfd_open without extern "C". Close-on-exec by itself.
  pidfd_ = OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

/// TERM first, to all of the group: rsync then keeps what it has of a file for the next time, in a
/// process that its parent does not wait for.
Process::~Process() {
  if (is_reaped_) return;
  ::kill(told_, ending_);
  const Deadline grace = end_of_childrens_grace();
  while (Clock::now() < grace && (!reap() || tell(0))) {
    std::this_thread::sleep_for(kLookAgain);
  }
  tell(SIGKILL);
  reap(Reap::waits);
}

/// The number of a child that was waited for may be another process's; that of its group is not
/// while somebody is in it.
bool Process::tell(int signal) const {
  const bool is_nobody = is_reaped_ && told_ == pid_;
  return !is_nobody && ::kill(told_, signal) == 0;
}

void Process::tell_to_end() {
  if (!is_reaped_) ::kill(told_, ending_);
}

void Process::end(std::chrono::milliseconds grace) {
  tell_to_end();
  const Deadline latest = after(grace);
  while (!reap() && Clock::now() < latest)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  tell(SIGKILL);
  reap(Reap::waits);
}

bool Process::reap(Reap how) {
  if (is_reaped_) return true;
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(pid_, &status, how == Reap::waits ? 0 : WNOHANG);
  while (ended < 0 && errno == EINTR);
  if (ended != pid_) return false;
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
  ::kill(told_, ending_);
  const Deadline grace = after(std::chrono::seconds(1));
  if (!co_await ends_before(grace)) ::kill(told_, SIGKILL);
  throw command_timed_out();
}

std::filesystem::path find_executable(const std::string& name) {
  namespace variables = boost_process::environment;
  if (name.find('/') != name.npos) return name;
  if (std::getenv("PATH") != nullptr) return variables::find_executable(name);
  return variables::find_executable(name,
                                    std::array{variables::key_value_pair("PATH=/bin:/usr/bin")});
}

Pipe make_pipe(NonBlocking end) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) {
    throw HostError(Failure::local_program,
                    fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  Pipe pipe{OwnedFd(fds[0]), OwnedFd(fds[1])};
  if (end != NonBlocking::writer) make_non_blocking(fds[0]);
  if (end != NonBlocking::reader) make_non_blocking(fds[1]);
  return pipe;
}

std::pair<OwnedFd, OwnedFd> make_sockets(int type, Failure otherwise) {
  int fds[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) != 0)
    throw HostError(otherwise, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  return {OwnedFd(fds[0]), OwnedFd(fds[1])};
}

}  // namespace dtool::ssh
