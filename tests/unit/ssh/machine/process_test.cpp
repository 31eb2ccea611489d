// SPDX-License-Identifier: MIT
// Programs on this machine: found, started clean, waited for, ended with all that they started.
#include "ssh/machine/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "ssh/host_error.h"
#include "ssh/machine/fd_bytes.h"
#include "ssh/machine/files.h"
#include "tests/unit/refused_calls.h"
#include "tests/unit/run_in.h"

namespace dtool::ssh {
namespace {

using std::chrono::milliseconds;
using tests::run_in;

Process::Program shell(std::string line) {
  Process::Program program;
  program.arguments = {"sh", "-c", std::move(line)};
  return program;
}

struct Ended {
  int exit_code = -1;
  std::string out;
};

asio::awaitable<Ended> finish(Reactor& reactor, Process::Program program) {
  Ended ended;
  std::function<void(std::string_view)> on_bytes = [&ended](std::string_view bytes) {
    ended.out += bytes;
  };
  Pipe pipe = make_pipe(NonBlocking::reader);
  Process::Descriptors descriptors;
  descriptors.out = pipe.writer.get();
  descriptors.err = pipe.writer.get();
  Process process(reactor, program, descriptors);
  pipe.writer.reset();
  const Deadline deadline = kNoDeadline;
  co_await read_all(reactor, pipe.reader.get(), on_bytes, &deadline);
  ended.exit_code = co_await process.wait(kNoDeadline);
  co_return ended;
}

Ended run(const Process::Program& program) {
  Reactor reactor;
  return run_in(reactor, finish(reactor, program));
}

TEST(Process, TellsItsExitCode) {
  EXPECT_EQ(run(shell("exit 0")).exit_code, 0);
  EXPECT_EQ(run(shell("exit 7")).exit_code, 7);
  EXPECT_EQ(run(shell("kill -KILL $$")).exit_code, 137);
}

TEST(Process, IsFoundByPath) {
  EXPECT_EQ(run(shell("echo hello")).out, "hello\n");
}

TEST(Process, IsFoundWhereThereIsNoPath) {
  const std::string path = std::getenv("PATH");
  ::unsetenv("PATH");
  EXPECT_EQ(run(shell("echo hello")).out, "hello\n");
  ::setenv("PATH", path.c_str(), 1);
}

TEST(Process, GetsItsWordsVariablesAndFolder) {
  Process::Program program;
  program.arguments = {"sh", "-c", "printf '%s|' \"$@\" \"$DTOOL_TEST_X\"; pwd", "-", "a  b",
                       "",   "'"};
  program.environment = {"DTOOL_TEST_X=y z"};
  program.folder = "/usr";
  EXPECT_EQ(run(program).out, "a  b||'|y z|/usr\n");
}

TEST(Process, ThatIsMissingIsNamed) {
  Reactor reactor;
  Process::Program program;
  program.arguments = {"no-such-program"};
  try {
    const Process process(reactor, program, {});
    FAIL() << "it was started";
  } catch (const HostError& error) {
    EXPECT_EQ(error.failure(), Failure::local_program);
    EXPECT_STREQ(error.what(),
                 "cannot run no-such-program on this machine: No such file or directory");
  }
}

TEST(Process, WhoseFolderIsMissingSaysSo) {
  Reactor reactor;
  Process::Program program;
  program.arguments = {"true"};
  program.folder = "/no-such-folder";
  try {
    const Process process(reactor, program, {});
    FAIL() << "it was started";
  } catch (const HostError& error) {
    EXPECT_STREQ(error.what(),
                 "cannot enter the folder /no-such-folder on this machine: "
                 "No such file or directory");
  }
}

TEST(Process, InheritsNothingButWhatIsNamed) {
  const Pipe kept_to_ourselves = make_pipe(NonBlocking::reader);
  // 255 is bash's own, where sh is bash; ls has one open on the folder that it lists.
  EXPECT_EQ(
      run(shell("for fd in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; :")).out,
      "");
}

TEST(Process, InheritsNothingBetweenAndBehindWhatIsNamed) {
  const Pipe pipe = make_pipe(NonBlocking::reader);
  const OwnedFd between(::fcntl(pipe.reader.get(), F_DUPFD, 20));  // not close-on-exec
  const OwnedFd behind(::fcntl(pipe.reader.get(), F_DUPFD, 500));
  const OwnedFd extra = memory_file("extra\n");
  const OwnedFd out = memory_file("");
  Reactor reactor;
  Process process(reactor,
                  shell("cat <&3; for fd in 4 5 6 7 8 9 20 500; do "
                        "[ -e /proc/$$/fd/$fd ] && echo $fd; done; :"),
                  {-1, out.get(), -1, extra.get()});
  EXPECT_EQ(run_in(reactor, process.wait(kNoDeadline)), 0);
  EXPECT_EQ(read_file("/proc/self/fd/" + std::to_string(out.get())), "extra\n");
}

TEST(Process, ReadsNothingAndWritesNowhereWhereItIsGivenNoDescriptors) {
  Reactor reactor;
  Process process(reactor, shell("cat; echo lost; echo lost >&2; exit 3"), {});
  EXPECT_EQ(run_in(reactor, process.wait(kNoDeadline)), 3);
}

TEST(Process, GetsDefaultSignals) {
  ::signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(run(shell("kill -PIPE $$; echo survived")).exit_code, 128 + SIGPIPE);
}

TEST(Process, HasNoSignalBlockedOrIgnored) {
  sigset_t usr1;
  sigset_t before;
  ::sigemptyset(&usr1);
  ::sigaddset(&usr1, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &usr1, &before);
  ::signal(SIGUSR2, SIG_IGN);
  Process::Program program;
  program.arguments = {"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"};
  EXPECT_EQ(run(program).out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  sigset_t now;
  ::sigprocmask(SIG_SETMASK, &before, &now);
  ::signal(SIGUSR2, SIG_DFL);
  EXPECT_EQ(::sigismember(&now, SIGUSR1), 1);
  EXPECT_EQ(::sigismember(&now, SIGTERM), 0);
}

/// The groups and the session of what runs so: "own" where it leads it, else "ours" or "another".
std::string standing(Process::Terminal terminal) {
  Process::Program program = shell(
      "read -r _ _ _ _ group session _ </proc/$$/stat; "
      "echo $$ $group $session");
  program.terminal = terminal;
  const std::string text = run(program).out;
  int pid = 0;
  int group = 0;
  int session = 0;
  std::sscanf(text.c_str(), "%d %d %d", &pid, &group, &session);
  const auto whose = [pid](int id, int ours) {
    return id == pid ? "own" : id == ours ? "ours" : "another";
  };
  return std::string(whose(group, ::getpgrp())) + " " + whose(session, ::getsid(0));
}

TEST(Process, HasAGroupOrASessionOfItsOwn) {
  EXPECT_EQ(standing(Process::Terminal::shared), "own ours");
  EXPECT_EQ(standing(Process::Terminal::none), "own own");
}

/// The two ends of a new terminal.
struct TestTerminal {
  OwnedFd outside{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  OwnedFd inside;
  TestTerminal() {
    ::grantpt(outside.get());
    ::unlockpt(outside.get());
    inside = OwnedFd(::open(::ptsname(outside.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  }
};

TEST(Process, HasTheTerminalThatIsItsInput) {
  Reactor reactor;
  const TestTerminal terminal;
  const OwnedFd out = memory_file("");
  Process::Program program = shell("tty; : </dev/tty && echo controls");
  program.terminal = Process::Terminal::own;
  Process process(reactor, program, {terminal.inside.get(), out.get(), -1});
  EXPECT_EQ(run_in(reactor, process.wait(kNoDeadline)), 0);
  EXPECT_EQ(read_file("/proc/self/fd/" + std::to_string(out.get())),
            std::string(::ptsname(terminal.outside.get())) + "\ncontrols\n");
}

int told_of_exit = -1;

TEST(Process, ThatCannotBeStartedLeavesNothingBehind) {
  const Pipe pipe = make_pipe(NonBlocking::both);
  told_of_exit = pipe.writer.get();
  static const pid_t ourselves = ::getpid();
  // Boost.Process's launcher ends its child with exit(), which would do this.
  std::atexit([] {
    if (::getpid() == ourselves) return;
    [[maybe_unused]] const auto written = ::write(told_of_exit, "x", 1);
  });
  Reactor reactor;
  Process::Program program;
  program.arguments = {"/etc/passwd"};
  EXPECT_THROW(Process(reactor, program, {}), HostError);
  char byte = 0;
  EXPECT_EQ(::read(pipe.reader.get(), &byte, 1), -1);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

bool is_alive(pid_t pid) {
  if (::kill(pid, 0) != 0) return false;
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
  if (file == nullptr) return false;
  char line[256] = {};
  const bool is_read = std::fgets(line, sizeof line, file) != nullptr;
  std::fclose(file);
  return is_read && std::string(line).find(") Z ") == std::string::npos;
}

bool ends(pid_t pid) {
  for (int i = 0; i < 200 && is_alive(pid); ++i) std::this_thread::sleep_for(milliseconds(50));
  return !is_alive(pid);
}

asio::awaitable<pid_t> read_pid(Reactor& reactor, int fd) {
  std::string text;
  std::function<void(std::string_view)> on_bytes = [&text](std::string_view bytes) {
    text += bytes;
  };
  while (text.find('\n') == std::string::npos) {
    const Deadline soon = after(milliseconds(20));
    co_await read_all(reactor, fd, on_bytes, &soon);
  }
  co_return static_cast<pid_t>(std::stoi(text));
}

TEST(Process, ThatTakesTooLongIsEndedWithItsChildren) {
  Reactor reactor;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  Process::Descriptors descriptors;
  descriptors.out = pipe.writer.get();
  Process process(reactor, shell("sleep 1000 & echo $!; wait"), descriptors);
  const pid_t child = run_in(reactor, read_pid(reactor, pipe.reader.get()));
  EXPECT_TRUE(is_alive(child));
  try {
    run_in(reactor, process.wait(after(milliseconds(20))));
    FAIL() << "it ended in time";
  } catch (const HostError& error) {
    EXPECT_EQ(error.failure(), Failure::timed_out);
  }
  EXPECT_TRUE(ends(child));
}

TEST(Process, ThatIgnoresTermIsKilled) {
  Reactor reactor;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  Process::Descriptors descriptors;
  descriptors.out = pipe.writer.get();
  pid_t child = 0;
  {
    Process process(reactor, shell("trap '' TERM; echo $$; while :; do sleep 0.1; done"),
                    descriptors);
    child = run_in(reactor, read_pid(reactor, pipe.reader.get()));
    EXPECT_THROW(run_in(reactor, process.wait(after(milliseconds(20)))), HostError);
  }
  EXPECT_TRUE(ends(child));
}

TEST(Process, ThatNobodyWaitedForEndsWithItsOwner) {
  Reactor reactor;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  Process::Descriptors descriptors;
  descriptors.out = pipe.writer.get();
  pid_t child = 0;
  {
    const Process process(reactor, shell("sleep 1000 & echo $!; wait"), descriptors);
    child = run_in(reactor, read_pid(reactor, pipe.reader.get()));
  }
  EXPECT_TRUE(ends(child));
}

TEST(Process, WithATerminalOfItsOwnIsToldToEndByHup) {
  Reactor reactor;
  const TestTerminal terminal;
  const Pipe pipe = make_pipe(NonBlocking::reader);
  const OwnedFd err = memory_file("");
  Process::Program program =
      shell("trap 'echo hup >&2; exit' HUP; echo $$; while :; do sleep 0.05; done");
  program.terminal = Process::Terminal::own;
  {
    const Process process(reactor, program, {terminal.inside.get(), pipe.writer.get(), err.get()});
    run_in(reactor, read_pid(reactor, pipe.reader.get()));
  }
  EXPECT_EQ(read_file("/proc/self/fd/" + std::to_string(err.get())), "hup\n");
}

int chld_signals = 0;

// boostorg/process issue 432: v2 waits with a SIGCHLD handler where it has no pidfd.
TEST(Process, LeavesTheHandlerOfSigchldAlone) {
  ::signal(SIGCHLD, [](int) { ++chld_signals; });
  EXPECT_EQ(run(shell("exit 7")).exit_code, 7);
  EXPECT_EQ(chld_signals, 1);
  struct sigaction now {};
  ::sigaction(SIGCHLD, nullptr, &now);
  EXPECT_NE(now.sa_handler, SIG_DFL);
  ::signal(SIGCHLD, SIG_DFL);
}

// Its issues 528, 564 and 567: an event that was queued for a descriptor reaches the next one that
// Asio keeps in the same place. v2's async_wait() then waits for the child, and nothing else runs.
TEST(Process, ThatRunsStopsNoEventLoopWhoseEventsAreMistaken) {
  Reactor reactor;
  Pipe first = make_pipe(NonBlocking::reader);
  Pipe second = make_pipe(NonBlocking::reader);
  asio::posix::stream_descriptor one(reactor.context(), first.reader.release());
  asio::posix::stream_descriptor other(reactor.context(), second.reader.release());
  std::optional<Process> process;
  std::optional<Clock::time_point> ticked;
  bool has_ended = false;
  asio::steady_timer timer(reactor.context());
  const auto begin = Clock::now();
  const auto start = [&](asio::posix::stream_descriptor& closed) {
    boost::system::error_code ignored;
    closed.close(ignored);
    process.emplace(reactor, shell("sleep 2"), Process::Descriptors{});
    asio::co_spawn(reactor.context(), process->wait(kNoDeadline),
                   [&](std::exception_ptr, int) { has_ended = true; });
    timer.expires_after(milliseconds(100));
    timer.async_wait([&](boost::system::error_code) { ticked = Clock::now(); });
  };
  const auto readable = asio::posix::stream_descriptor::wait_read;
  one.async_wait(readable, [&](boost::system::error_code error) {
    if (!error && !process) start(other);
  });
  other.async_wait(readable, [&](boost::system::error_code error) {
    if (!error && !process) start(one);
  });
  ASSERT_EQ(::write(first.writer.get(), "x", 1), 1);
  ASSERT_EQ(::write(second.writer.get(), "x", 1), 1);
  reactor.context().run();
  ASSERT_TRUE(ticked);
  EXPECT_LT(*ticked - begin, std::chrono::seconds(1));
  EXPECT_GE(Clock::now() - begin, std::chrono::seconds(2));
  EXPECT_TRUE(has_ended);
}

TEST(Process, IsHeardOfWhenItEndsWhereManyDo) {
  constexpr int kMany = 60;
  Reactor reactor;
  std::vector<std::unique_ptr<Process>> all;
  int ended = 0;
  for (int i = 0; i < kMany; ++i) {
    all.push_back(std::make_unique<Process>(reactor, shell("exit 5"), Process::Descriptors{}));
    asio::co_spawn(reactor.context(), all.back()->wait(after(std::chrono::seconds(60))),
                   [&](std::exception_ptr error, int exit_code) {
                     if (!error && exit_code == 5) ++ended;
                   });
  }
  reactor.context().run();
  EXPECT_EQ(ended, kMany);
}

/// What goes wrong with Linux before 5.3: empty where nothing does.
std::string run_without_pidfds() {
  tests::refuse_call(SYS_pidfd_open, ENOSYS);
  if (::syscall(SYS_pidfd_open, ::getpid(), 0) != -1 || errno != ENOSYS) return "a pidfd";
  ::signal(SIGCHLD, [](int) { ++chld_signals; });
  const Ended ended = run(shell("echo hello; exit 7"));
  if (ended.exit_code != 7 || ended.out != "hello\n") return "not run";
  if (chld_signals != 1) return "SIGCHLD was taken";
  Reactor reactor;
  Process process(reactor, shell("sleep 1000"), {});
  try {
    run_in(reactor, process.wait(after(milliseconds(30))));
    return "no deadline";
  } catch (const HostError& error) {
    if (error.failure() != Failure::timed_out) return error.what();
  }
  return process.exit_code() == 128 + SIGTERM ? "" : "not ended";
}

// Its issue 549: v2 throws where the kernel has no pidfd_open, and its child runs on.
TEST(Process, NeedsNoPidfd) {
  const OwnedFd told = memory_file("");
  chld_signals = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string wrong = run_without_pidfds();
    [[maybe_unused]] const auto written = ::write(told.get(), wrong.data(), wrong.size());
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file("/proc/self/fd/" + std::to_string(told.get())), "");
}

}  // namespace
}  // namespace dtool::ssh
