// SPDX-License-Identifier: MIT
// Programs that dtool-host runs: what becomes of them when it is killed.
#include "ssh/host/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

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

}  // namespace
}  // namespace dtool::host
