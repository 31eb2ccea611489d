// SPDX-License-Identifier: MIT
// Programs that dtool-host runs: what becomes of them when it is killed.
#include "ssh/host/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ssh/host/process_table.h"
#include "tests/unit/interruptions.h"
#include "tests/unit/refused_calls.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

bool becomes_true(auto is) {
  for (int i = 0; i < 1000; ++i) {
    if (is()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

/// Whether it runs; one that has ended and was not yet waited for does not.
bool runs(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number;
  std::string name;
  char state = 'Z';
  stat >> number >> name >> state;
  return state != 'Z' && state != 'X';
}

/// Kills a process that runs a program so; returns the program, which is left or has ended.
pid_t orphan_of(Orphan orphan, const std::string& file) {
  const pid_t runner = ::fork();
  if (runner == 0) {
    run_program({"sh", "-c", "echo $$ >new && mv new \"$0\" && exec sleep 100", file}, 100s,
                std::filesystem::path(file).parent_path(), orphan);
    ::_exit(0);
  }
  EXPECT_TRUE(becomes_true([&] { return std::filesystem::exists(file); }));
  pid_t program = 0;
  std::ifstream(file) >> program;
  ::kill(runner, SIGKILL);
  ::waitpid(runner, nullptr, 0);
  return program;
}

TEST(RunProgram, ItsProgramEndsWithItWhereThatIsAsked) {
  const tests::TemporaryFolder folder;
  const pid_t program = orphan_of(Orphan::ends, folder.path() / "pid");
  ASSERT_GT(program, 0);
  EXPECT_TRUE(becomes_true([&] { return !runs(program); }));
}

TEST(RunProgram, WhatItsProgramLeavesBehindIsNotWaitedFor) {
  const auto began = std::chrono::steady_clock::now();
  const ChildResult told = run_program({"sh", "-c", "sleep 30 & echo $!; exit 3"}, 20s);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  EXPECT_EQ(told.exit_code, 3);
  EXPECT_FALSE(told.timed_out);
  const pid_t left = std::stoi(told.out);
  EXPECT_TRUE(runs(left));
  ::kill(left, SIGKILL);
}

TEST(RunProgram, ItsProgramGoesOnElsewhere) {
  const tests::TemporaryFolder folder;
  const pid_t program = orphan_of(Orphan::goes_on, folder.path() / "pid");
  ASSERT_GT(program, 0);
  std::this_thread::sleep_for(200ms);
  EXPECT_TRUE(runs(program));
  ::kill(program, SIGKILL);
}

TEST(RunProgram, TellsWhatBecameOfIt) {
  const tests::TemporaryFolder folder;
  const ChildResult told =
      run_program({"sh", "-c", "echo out; echo err >&2; pwd; exit 7"}, 20s, folder.path());
  EXPECT_EQ(told.out, "out\n" + folder.path().string() + "\n");
  EXPECT_EQ(told.err, "err\n");
  EXPECT_EQ(told.exit_code, 7);
  EXPECT_FALSE(told.is_missing);
  EXPECT_EQ(run_program({"sh", "-c", "kill -TERM $$"}, 20s).exit_code, 128 + SIGTERM);
  EXPECT_TRUE(run_program({folder.path() / "none"}, 20s).is_missing);
  std::ofstream(folder.path() / "text") << "text";
  EXPECT_FALSE(run_program({folder.path() / "text"}, 20s).is_missing) << "it is no program";
}

TEST(RunProgram, EndsAtItsTimeout) {
  const auto began = std::chrono::steady_clock::now();
  const ChildResult told = run_program({"sh", "-c", "echo begun; exec sleep 30"}, 100ms);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  EXPECT_TRUE(told.timed_out);
  EXPECT_EQ(told.exit_code, 128 + SIGKILL);
}

TEST(RunProgram, HasTheFirstMebibyteOfEachStream) {
  for (const std::string to : {"", " >&2"}) {
    const std::string beginning = "echo begin" + to + "; ";
    const ChildResult told =
        run_program({"sh", "-c", beginning + "head -c 3000001 /dev/zero" + to + "; exit 5"}, 100s);
    const std::string& stream = to.empty() ? told.out : told.err;
    EXPECT_EQ(stream.size(), 1U << 20U);
    EXPECT_TRUE(stream.starts_with("begin\n"));
    EXPECT_EQ(told.out.size() + told.err.size(), stream.size());
    EXPECT_EQ(told.exit_code, 5);
    EXPECT_FALSE(told.timed_out);
  }
}

TEST(RunProgram, ReadsOneStreamToItsEndWhereTheOtherHasEnded) {
  const ChildResult out =
      run_program({"sh", "-c", "exec 2>&-; sleep 0.05; echo out; exit 3"}, 100s);
  EXPECT_EQ(out.out, "out\n");
  EXPECT_EQ(out.exit_code, 3);
  const ChildResult err =
      run_program({"sh", "-c", "exec >&-; sleep 0.05; echo err >&2; exit 3"}, 100s);
  EXPECT_EQ(err.err, "err\n");
  EXPECT_EQ(err.exit_code, 3);
}

TEST(RunProgram, WaitsForAProgramThatIsSilentForAWhile) {
  const ChildResult told = run_program({"sh", "-c", "sleep 0.7; echo late; exit 3"}, 100s);
  EXPECT_EQ(told.out, "late\n");
  EXPECT_EQ(told.exit_code, 3);
}

TEST(RunProgram, WaitsForTheEndOfOneThatHasClosedItsStreams) {
  const tests::Interruptions interruptions;
  const ChildResult told = run_program({"sh", "-c", "exec >&- 2>&-; sleep 0.05; exit 3"}, 100s);
  EXPECT_EQ(told.exit_code, 3);
  EXPECT_FALSE(told.timed_out);
}

TEST(RunProgram, AnEarlierInterruptionIsNotTakenForOne) {
  errno = EINTR;
  const ChildResult told = run_program({"echo", "out"}, 100s);
  EXPECT_EQ(told.out, "out\n");
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_FALSE(told.timed_out);
}

TEST(RunProgram, GivesNoInput) {
  EXPECT_EQ(run_program({"cat"}, 100s).exit_code, 0);
}

TEST(RunProgram, RunsNothingInAFolderThatIsMissing) {
  const tests::TemporaryFolder folder;
  const ChildResult told =
      run_program({"touch", folder.path() / "file"}, 100s, folder.path() / "none");
  EXPECT_EQ(told.exit_code, kCannotRun);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "file"));
}

/// What is said where no process can be made, by each way to make one.
[[noreturn]] void make_none() {
  tests::refuse_processes(EAGAIN);
  const auto error_of = [](auto call) -> std::string {
    try {
      call();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "none";
  };
  const std::string expected = "no process can be made: Resource temporarily unavailable";
  const bool is_said = error_of([] { run_program({"true"}, 100s); }) == expected &&
                       error_of([] { Child({"true"}, "/"); }) == expected &&
                       try_program({"true"}, 100s).fault == expected &&
                       start_detached({"/bin/true"}, "/", Descriptor()) == expected;
  ::_exit(is_said ? 0 : 1);
}

TEST(Processes, AreSaidToBeMissingWhereNoneCanBeMade) {
  EXPECT_EXIT(make_none(), testing::ExitedWithCode(0), "");
}

TEST(TryProgram, TellsWhatRunProgramDoes) {
  const ChildResult told = try_program({"sh", "-c", "pwd; exit 3"}, 100s, "/");
  EXPECT_EQ(told.out, "/\n");
  EXPECT_EQ(told.exit_code, 3);
  EXPECT_EQ(told.fault, "");
  EXPECT_FALSE(told.ok());
}

TEST(FindProgram, LooksInTheUsualFoldersWhereThereIsNoPath) {
  const tests::TemporaryVariable path("PATH", "");
  EXPECT_EQ(find_program("sh"), "");
  ::unsetenv("PATH");
  EXPECT_TRUE(find_program("sh").ends_with("/bin/sh")) << find_program("sh");
}

TEST(FindProgram, LooksInThePathsFolders) {
  const tests::TemporaryFolder folder;
  const auto make = [&](const std::string& name, const char* mode) {
    std::ofstream(folder.path() / name) << "#!/bin/sh\n";
    EXPECT_EQ(::chmod((folder.path() / name).c_str(), std::stoi(mode, nullptr, 8)), 0);
  };
  std::filesystem::create_directories(folder.path() / "first/folder");
  std::filesystem::create_directories(folder.path() / "second");
  make("second/tool", "755");
  make("second/folder", "755");
  make("first/text", "644");
  const std::string first = folder.path() / "first";
  const std::string second = folder.path() / "second";
  const tests::TemporaryVariable path("PATH", first + ":" + second);
  EXPECT_EQ(find_program("tool"), second + "/tool");
  EXPECT_EQ(find_program("folder"), second + "/folder");
  EXPECT_EQ(find_program("text"), "");
  EXPECT_EQ(find_program("none"), "");
  EXPECT_EQ(find_program(second + "/tool"), second + "/tool");
  EXPECT_EQ(find_program(second + "/none"), "");
}

TEST(Environment, IsTakenAndSetAgain) {
  const tests::TemporaryVariable own("DTOOL_UNIT", "a=b");
  const auto before = own_environment();
  EXPECT_EQ(std::ranges::count(before, "DTOOL_UNIT=a=b"), 1);
  set_environment({"DTOOL_UNIT=other", "no variable"});
  EXPECT_EQ(own_environment(), std::vector<std::string>{"DTOOL_UNIT=other"});
  set_environment(before);
  EXPECT_EQ(own_environment(), before);
}

/// The first line of a file that another process writes.
std::string awaited(const std::filesystem::path& file) {
  EXPECT_TRUE(becomes_true([&] { return std::filesystem::exists(file); }));
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  return line;
}

TEST(StartDetached, RunsElsewhereWithTheRunsIdAndThatInput) {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.path() / "input") << "what it reads";
  const Descriptor input(::open((folder.path() / "input").c_str(), O_RDONLY | O_CLOEXEC));
  const std::string say =
      "read -r line; echo \"$DTOOL_RUN_ID $line $(ps -o ppid= -p $$) $(pwd)\" "
      ">new; mv new told";
  EXPECT_EQ(start_detached({"/bin/sh", "-c", say}, folder.path(), input, "x_1"), "");
  const std::string told = awaited(folder.path() / "told");
  EXPECT_EQ(told.substr(0, told.find('r')), "x_1 what it ") << told;
  EXPECT_TRUE(told.ends_with(" " + folder.path().string())) << told;
  EXPECT_EQ(told.find(" " + std::to_string(::getpid()) + " "), told.npos)
      << "it is a child: " << told;
}

TEST(StartDetached, ReadsNothingWhereItIsGivenNothing) {
  const tests::TemporaryVariable of_no_run("DTOOL_RUN_ID", "");
  const tests::TemporaryFolder folder;
  EXPECT_EQ(start_detached({"/bin/sh", "-c", "echo \"<$(cat)>$DTOOL_RUN_ID\" >new; mv new told"},
                           folder.path(), Descriptor(), ""),
            "");
  EXPECT_EQ(awaited(folder.path() / "told"), "<>");
}

TEST(Child, IsEndedWithItsOwner) {
  const tests::TemporaryFolder folder;
  pid_t pid = 0;
  {
    Child child({"sh", "-c", "echo $$ >new; mv new pid; exec sleep 30"}, folder.path());
    EXPECT_TRUE(child.is_running());
    pid = std::stoi(awaited(folder.path() / "pid"));
    EXPECT_TRUE(runs(pid));
  }
  EXPECT_FALSE(runs(pid));
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), -1) << "it was not waited for";
  Child other({"echo", "what it says"}, "/");
  EXPECT_EQ(other.output(), "what it says\n");
  EXPECT_TRUE(becomes_true([&] { return !other.is_running(); }));
  EXPECT_FALSE(other.is_running());
}

TEST(Child, IsGoneOnceItsOwnerIsThoughThatIsInterrupted) {
  const auto count_own = [] {
    return std::ranges::count(read_processes(), ::getpid(), &Process::parent);
  };
  const auto before = count_own();
  const tests::Interruptions interruptions;
  for (int i = 0; i < 30; ++i) Child child({"sleep", "30"}, "/");
  EXPECT_EQ(count_own(), before);
}

TEST(Child, ThatHasEndedSaysNothingOfAnother) {
  Child other({"sleep", "30"}, "/");
  Child child({"true"}, "/");
  EXPECT_TRUE(becomes_true([&] { return !child.is_running(); }));
  EXPECT_FALSE(child.is_running());
  EXPECT_TRUE(other.is_running());
}

TEST(Child, ItsOutputIsWhole) {
  const tests::Interruptions interruptions;
  Child child({"sh", "-c", "echo one; sleep 0.05; pwd"}, "/");
  EXPECT_EQ(child.output(), "one\n/\n");
}

TEST(StartDetached, LeadsASessionOfItsOwn) {
  const tests::TemporaryFolder folder;
  EXPECT_EQ(start_detached({"/bin/sh", "-c", "echo $$ $(ps -o sid= -p $$) >new; mv new told"},
                           folder.path(), Descriptor()),
            "");
  const std::string told = awaited(folder.path() / "told");
  const std::string pid = told.substr(0, told.find(' '));
  EXPECT_EQ(told, pid + " " + pid);
}

TEST(StartDetached, TheRunsIdTakesThePlaceOfAnothers) {
  const tests::TemporaryVariable of_another("DTOOL_RUN_ID", "y_1");
  const tests::TemporaryFolder folder;
  const tests::Interruptions interruptions;
  EXPECT_EQ(start_detached({"/bin/sh", "-c", "echo $DTOOL_RUN_ID >new; mv new told"}, folder.path(),
                           Descriptor(), "x_1"),
            "");
  EXPECT_EQ(awaited(folder.path() / "told"), "x_1");
}

TEST(ExitCode, IsThatOfShells) {
  EXPECT_EQ(to_exit_code(3 << 8), 3);
  EXPECT_EQ(to_exit_code(SIGKILL), kKilled);
}

TEST(Pause, LastsItsTimeThoughItIsInterrupted) {
  const tests::Interruptions interruptions;
  const auto began = std::chrono::steady_clock::now();
  pause(30ms);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 30ms);
}

TEST(Pause, LastsItsTime) {
  const auto began = std::chrono::steady_clock::now();
  pause(120ms);
  const auto passed = std::chrono::steady_clock::now() - began;
  EXPECT_GE(passed, 120ms);
  EXPECT_LT(passed, 10s);
}

}  // namespace
}  // namespace dtool::host
