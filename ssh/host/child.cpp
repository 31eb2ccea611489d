// SPDX-License-Identifier: MIT
#include "ssh/host/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "ssh/host/files.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  Descriptor reader;
  Descriptor writer;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error(with_reason("no pipe"));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// In the child; only calls that are safe between fork and exec.
[[noreturn]] void become(const std::vector<char*>& arguments, const std::string& folder, int out,
                         int err, int fault) {
  give_nothing({STDIN_FILENO});
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  if (folder.empty() || ::chdir(folder.c_str()) == 0) ::execvp(arguments[0], arguments.data());
  const int reason = errno;
  [[maybe_unused]] const ssize_t size = ::write(fault, &reason, sizeof reason);
  ::_exit(kCannotRun);
}

/// Takes the available bytes; false at the end.
bool take(int descriptor, std::string& text) {
  std::array<char, 4096> piece;
  const ssize_t size = ::read(descriptor, piece.data(), piece.size());
  if (size < 0) return errno == EINTR;
  text.append(piece.data(), std::min(static_cast<std::size_t>(size), kMostOutput - text.size()));
  return size != 0;
}

/// Whether the child has ended; it is still to be waited for.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

/// Until both streams have ended, or the time is over. What the child leaves behind may keep them
/// open: after its end they are read until nothing comes for a while.
void collect(pid_t child, Pipe& out, Pipe& err, Clock::time_point end, ChildResult& result) {
  constexpr std::chrono::milliseconds kForRest{500};
  std::array<pollfd, 2> waited{{{out.reader.get(), POLLIN, 0}, {err.reader.get(), POLLIN, 0}}};
  while (waited[0].fd != -1 || waited[1].fd != -1) {
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (rest.count() <= 0) {
      result.timed_out = true;
      return;
    }
    const int came =
        ::poll(waited.data(), waited.size(), static_cast<int>(std::min(rest, kForRest).count()));
    if (came == 0 && has_ended(child)) return;
    if (came <= 0) continue;
    if (waited[0].revents != 0 && !take(waited[0].fd, result.out)) waited[0].fd = -1;
    if (waited[1].revents != 0 && !take(waited[1].fd, result.err)) waited[1].fd = -1;
  }
}

}  // namespace

std::vector<char*> as_pointers(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& each : arguments) pointers.push_back(const_cast<char*>(each.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

int to_exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string find_program(const std::string& name) {
  const auto is_runnable = [](const std::string& file) {
    return !is_folder(file) && ::access(file.c_str(), X_OK) == 0;
  };
  if (name.find('/') != name.npos) return is_runnable(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const std::string folder(cut(rest, ':'));
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (is_runnable(file)) return file;
  }
  return {};
}

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) variables.emplace_back(*each);
  return variables;
}

void set_environment(const std::vector<std::string>& variables) {
  ::clearenv();
  for (const std::string& variable : variables) {
    const std::size_t equals = variable.find('=');
    if (equals != variable.npos)
      ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
}

int wait_for_child(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) == -1) {
    if (errno != EINTR) return kCannotRun;
  }
  return to_exit_code(status);
}

sigset_t block_signals(std::initializer_list<int> signals) {
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (const int each : signals) ::sigaddset(&blocked, each);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
  return blocked;
}

void unblock_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void give_nothing(std::initializer_list<int> streams) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int each : streams)
    if (nothing == each)
      ::fcntl(each, F_SETFD, 0);  // it was closed
    else
      ::dup2(nothing, each);
}

void end_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotRun);
}

ChildResult run_program(const std::vector<std::string>& arguments,
                        std::chrono::milliseconds timeout, const std::string& folder,
                        Orphan orphan) {
  const std::vector<char*> pointers = as_pointers(arguments);
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Pipe fault = make_pipe();
  const Clock::time_point end = Clock::now() + timeout;
  const pid_t own = ::getpid();
  const pid_t child = ::fork();
  if (child == -1) throw std::runtime_error(with_reason("no process can be made"));
  if (child == 0 && orphan == Orphan::ends) end_with(own);
  if (child == 0) become(pointers, folder, out.writer.get(), err.writer.get(), fault.writer.get());
  out.writer = Descriptor();
  err.writer = Descriptor();
  fault.writer = Descriptor();

  ChildResult result;
  collect(child, out, err, end, result);
  if (result.timed_out) ::kill(child, SIGKILL);
  result.exit_code = wait_for_child(child);
  int reason = 0;
  const bool did_not_run = ::read(fault.reader.get(), &reason, sizeof reason) == sizeof reason;
  result.is_missing = did_not_run && reason == ENOENT;
  return result;
}

ChildResult try_program(const std::vector<std::string>& arguments,
                        std::chrono::milliseconds timeout, const std::string& folder) {
  try {
    return run_program(arguments, timeout, folder);
  } catch (const std::runtime_error& error) {
    ChildResult result;
    result.fault = error.what();
    return result;
  }
}

Child::Child(const std::vector<std::string>& arguments, const std::string& folder) {
  const std::vector<char*> pointers = as_pointers(arguments);
  Pipe out = make_pipe();
  Pipe fault = make_pipe();
  pid_ = ::fork();
  if (pid_ == -1) throw std::runtime_error(with_reason("no process can be made"));
  if (pid_ == 0) become(pointers, folder, out.writer.get(), STDERR_FILENO, fault.writer.get());
  out_ = std::move(out.reader);
}

Child::~Child() {
  if (pid_ == -1) return;
  ::kill(pid_, SIGKILL);
  wait_for_child(pid_);
}

bool Child::is_running() {
  if (pid_ == -1) return false;
  const pid_t ended = ::waitpid(pid_, nullptr, WNOHANG);
  if (ended == 0) return true;
  pid_ = -1;
  return false;
}

std::string Child::output() {
  std::string text;
  while (take(out_.get(), text)) {
  }
  return text;
}

// The first child ends at once, so that the second belongs to init.
std::string start_detached(const std::vector<std::string>& arguments, const std::string& folder,
                           const Descriptor& input, const std::string& run_id) {
  const std::vector<char*> pointers = as_pointers(arguments);
  const pid_t child = ::fork();
  if (child == -1) return with_reason("no process can be made");
  if (child == 0) {
    ::setsid();
    const pid_t grandchild = ::fork();
    if (grandchild != 0) ::_exit(grandchild == -1 ? 1 : 0);
    give_nothing({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
    if (input.is_open()) ::dup2(input.get(), STDIN_FILENO);
    ::setsid();
    if (!run_id.empty()) ::setenv("DTOOL_RUN_ID", run_id.c_str(), 1);
    if (::chdir(folder.c_str()) == 0) ::execv(pointers[0], pointers.data());
    ::_exit(1);
  }
  return wait_for_child(child) == 0 ? "" : "no process can be made";
}

void pause(std::chrono::milliseconds duration) {
  std::this_thread::sleep_for(duration);
}

}  // namespace dtool::host
