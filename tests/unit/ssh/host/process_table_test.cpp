// SPDX-License-Identifier: MIT
// Processes are read as the kernel shows them, whatever they call themselves.
#include "ssh/host/process_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ssh/host/child.h"
#include "tests/unit/own_program.h"
#include "tests/unit/refused_calls.h"

namespace dtool::host {
namespace {

const std::string kRest =
    " S 10 20 30 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 1 0 12345 1000 77 0 0 0 0 0\n";

TEST(ParseStat, ReadsTheFieldsThatProc5Names) {
  const auto process = parse_stat("42 (name)" + kRest);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->pid, 42);
  EXPECT_EQ(process->parent, 10);
  EXPECT_EQ(process->session, 30);
  EXPECT_EQ(process->threads, 1);
  EXPECT_EQ(process->start, 12345U);
  EXPECT_EQ(process->cpu_ticks, 110U);
  EXPECT_EQ(process->resident_pages, 77U);
}

TEST(ParseStat, TakesTheNameThatAProgramGaveItself) {
  for (const std::string name : {"a) R 1 (b", "line\nend", ") ", "", "()"}) {
    const auto process = parse_stat("42 (" + name + ")" + kRest);
    ASSERT_TRUE(process) << name;
    EXPECT_EQ(process->name, name);
    EXPECT_EQ(process->parent, 10) << name;
  }
}

TEST(ParseStat, WhatIsNotOneIsRefused) {
  for (const std::string text : {"", "42", "42 (x)", "x (y) S 1 2 3", "42 (x) S 1 2 3"})
    EXPECT_FALSE(parse_stat(text)) << text;
}

TEST(ParseStat, NeedsEachFieldUpToTheSizeInMemoryAndNoneAfterIt) {
  std::vector<std::string> fields;
  std::istringstream stream("42 (name)" + kRest);
  for (std::string each; stream >> each && fields.size() < 24;) fields.push_back(each);
  const auto parse = [](const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& each : words) text += each + " ";
    return parse_stat(text);
  };
  ASSERT_TRUE(parse(fields));
  EXPECT_EQ(parse(fields)->resident_pages, 77U);
  EXPECT_EQ(parse(fields)->state, 'S');
  for (const std::size_t number : {1U, 3U, 4U, 6U, 14U, 15U, 20U, 22U, 24U}) {
    auto wrong = fields;
    wrong[number - 1] = "xx";
    EXPECT_FALSE(parse(wrong)) << number;
  }
  fields.pop_back();
  EXPECT_FALSE(parse(fields));
  EXPECT_FALSE(parse_stat("1) (x" + kRest.substr(2))) << "the parentheses are the wrong way round";
}

TEST(ReadProcesses, SeesThisOne) {
  const auto processes = read_processes();
  const auto self = std::ranges::find(processes, ::getpid(), &Process::pid);
  ASSERT_NE(self, processes.end());
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_EQ(user_of(::getpid()), ::getuid());
  EXPECT_FALSE(self->is_dead());
}

/// What a process says that does this where a system call fails. It ends as the child of
/// EXPECT_EXIT.
[[noreturn]] void say(const std::function<std::string()>& what) {
  std::string said;
  try {
    said = what();
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  std::fputs(said.c_str(), stderr);
  ::_exit(0);
}

/// From now on this process can open folders only, as where others have taken the last descriptor.
void open_no_more_files(int error) {
  tests::refuse_call(SYS_openat, error, {2, O_DIRECTORY, 0});
}

TEST(ReadProcesses, LeavesNoneOutForWantOfADescriptor) {
  const std::pair<int, const char*> wants[] = {
      {EMFILE, "cannot be looked at: Too many open files"},
      {ENFILE, "cannot be looked at: Too many open files in system"},
      {ENOMEM, "cannot be looked at: Cannot allocate memory"},
      {EACCES, "cannot be looked at: /proc/PID/stat is not as the kernel documents it"}};
  for (const auto& [error, said] : wants) {
    const auto look = [] { return std::to_string(read_processes().size()); };
    EXPECT_EXIT((open_no_more_files(error), say(look)), testing::ExitedWithCode(0), said);
  }
}

TEST(ListPids, ThrowsWhereNotAllCanBeSeen) {
  const auto list = [] { return std::to_string(list_pids().size()); };
  EXPECT_EXIT((tests::refuse_call(SYS_openat, EMFILE, {2, O_DIRECTORY, O_DIRECTORY}), say(list)),
              testing::ExitedWithCode(0), "cannot be looked at: Too many open files");
  EXPECT_EXIT((tests::refuse_call(SYS_getdents64, EIO), say(list)), testing::ExitedWithCode(0),
              "cannot be looked at: Input/output error");
  EXPECT_EXIT((tests::refuse_call(SYS_getpid, 1), say(list)), testing::ExitedWithCode(0),
              "/proc does not show dtool-host itself");
}

TEST(FindProcess, IsNothingWhereThePidIsAnothers) {
  const auto self = find_process(::getpid());
  ASSERT_TRUE(self);
  EXPECT_TRUE(find_process(::getpid(), self->start));
  EXPECT_FALSE(find_process(::getpid(), self->start + 1));
  EXPECT_FALSE(find_process(0, self->start));
}

std::string look_of(const RunMark& mark) {
  switch (mark.look) {
    case RunMark::Look::seen:
      return "seen";
    case RunMark::Look::hidden:
      return "hidden";
    case RunMark::Look::gone:
      return "gone";
  }
  return "";
}

TEST(ReadRunMark, TellsAHiddenProcessFromOneThatIsGone) {
  const std::pair<int, const char*> looks[] = {{EACCES, "^hidden$"},
                                               {EPERM, "^hidden$"},
                                               {ENOENT, "^gone$"},
                                               {ESRCH, "^gone$"},
                                               {EMFILE, "Too many"},
                                               {ENFILE, "Too many open files in system"},
                                               {ENOMEM, "Cannot allocate memory"}};
  const auto look = [] { return look_of(read_run_mark(::getpid())); };
  for (const auto& [error, said] : looks)
    EXPECT_EXIT((open_no_more_files(error), say(look)), testing::ExitedWithCode(0), said);
  EXPECT_EQ(look(), "seen");
  EXPECT_EQ(look_of(read_run_mark(0)), "gone");
}

TEST(UserOf, IsNothingWhereItIsGoneAndThrowsForWantOfADescriptor) {
  const std::pair<int, const char*> users[] = {{EACCES, "^nobody$"},
                                               {EMFILE, "Too many open files"},
                                               {ENFILE, "Too many open files in system"},
                                               {ENOMEM, "Cannot allocate memory"}};
  const auto user = [] {
    const auto found = user_of(::getpid());
    return found ? std::to_string(*found) : "nobody";
  };
  for (const auto& [error, said] : users)
    EXPECT_EXIT((open_no_more_files(error), say(user)), testing::ExitedWithCode(0), said);
  EXPECT_EQ(user(), std::to_string(::getuid()));
}

/// A child that has become `sleep 60` with just these variables.
class Sleeper {
 public:
  explicit Sleeper(const std::vector<std::string>& variables) : pid_(::fork()) {
    std::vector<std::string> words = {"env", "-i"};
    words.insert(words.end(), variables.begin(), variables.end());
    for (const char* each : {"sleep", "60"}) words.emplace_back(each);
    if (pid_ == 0) {
      ::execvp(words[0].c_str(), as_pointers(words).data());
      ::_exit(127);
    }
    for (int i = 0; i < 1000 && command_of(pid_, 60) != "sleep 60"; ++i)
      pause(std::chrono::milliseconds(10));
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  std::optional<std::string> run_id() const { return read_run_mark(pid_).run_id; }

 private:
  pid_t pid_;
};

TEST(ReadRunMark, IsTheValueAmongOtherVariables) {
  EXPECT_EQ(Sleeper({"A=1", "DTOOL_RUN_ID=x_1", "B=2"}).run_id(), "x_1");
  EXPECT_EQ(Sleeper({"DTOOL_RUN_ID=y"}).run_id(), "y");
  EXPECT_EQ(Sleeper({"DTOOL_RUN_IDS=y", "MY_DTOOL_RUN_ID=y"}).run_id(), std::nullopt);
  EXPECT_EQ(Sleeper({}).run_id(), std::nullopt);
}

const tests::OwnProgram kWithoutMainThread("without_main_thread", [] {
  std::thread([] {
    for (;;) ::pause();
  }).detach();
  ::syscall(SYS_exit, 0);
  return 1;
});

TEST(ReadRunMark, IsThatOfTheOtherThreadsWhereTheMainOneHasEnded) {
  const std::string own = std::filesystem::read_symlink("/proc/self/exe");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execlp("env", "env", "DTOOL_RUN_ID=x_1", own.c_str(), "without_main_thread", nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 1000 && find_process(pid).value().state != 'Z'; ++i)
    pause(std::chrono::milliseconds(10));
  EXPECT_EQ(read_run_mark(pid).run_id, "x_1");
  ::kill(pid, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(SecondsSinceBoot, AreTheClocks) {
  const auto clock = [] {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  };
  constexpr double kRounding = 1e-6;
  const double before = clock();
  const double now = seconds_since_boot();
  EXPECT_LE(before, now + kRounding);
  EXPECT_LE(now, clock() + kRounding);
}

TEST(CurrentBoot, IsTheKernelsIdOrTheStartOfProcess1) {
  EXPECT_EQ(boot_id().size(), 36U);
  EXPECT_EQ(current_boot(), boot_id());
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to hide the kernel's id";
  const auto without_id = [] {
    const bool is_hidden =
        ::unshare(CLONE_NEWNS) == 0 &&
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        ::mount("/dev/null", "/proc/sys/kernel/random/boot_id", nullptr, MS_BIND, nullptr) == 0;
    const std::string expected = "init-" + std::to_string(find_process(1).value().start);
    return !is_hidden || current_boot() == expected ? std::string("as expected") : current_boot();
  };
  EXPECT_EXIT(say(without_id), testing::ExitedWithCode(0), "^as expected$");
}

TEST(Process, IsNotDeadWhereOnlyItsMainThreadHasEnded) {
  Process process;
  process.state = 'Z';
  process.threads = 2;
  EXPECT_FALSE(process.is_dead());
  process.threads = 1;
  EXPECT_TRUE(process.is_dead());
  process.state = 'X';
  EXPECT_TRUE(process.is_dead());
  process.state = 'S';
  EXPECT_FALSE(process.is_dead());
}

TEST(CommandOf, IsShownWithoutWhatSteersATerminalAndNoLongerThanAsked) {
  Child child({"/bin/bash", "-c", "exec -a $'a\\e[31m\\x7f\\tb\\nc' sleep 54"}, "/");
  pid_t pid = 0;
  for (int i = 0; i < 500 && pid == 0; ++i) {
    pause(std::chrono::milliseconds(10));
    for (const Process& each : read_processes()) {
      if (each.parent == ::getpid() && each.name == "sleep") pid = each.pid;
    }
  }
  EXPECT_EQ(command_of(pid, 60), "a[31m b c 54");
  EXPECT_EQ(command_of(pid, 7), "a[31m b");
  EXPECT_EQ(command_of(pid, 8), "a[31m b") << "with no blank at its end";
}

}  // namespace
}  // namespace dtool::host
