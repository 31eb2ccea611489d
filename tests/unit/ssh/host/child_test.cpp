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
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

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
  Child other({"echo", "what it says"}, "/");
  EXPECT_EQ(other.output(), "what it says\n");
  EXPECT_TRUE(becomes_true([&] { return !other.is_running(); }));
  EXPECT_FALSE(other.is_running());
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
