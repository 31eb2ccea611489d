// SPDX-License-Identifier: MIT
// Which runs of this user go on here, and what they still need.
#include "ssh/host/answers/survey.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "ssh/host/session/job.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

class UsedByRuns : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    folder_.write(".dtool/runs/" + file, text);
  }

  const tests::TemporaryFolder folder_;
  const tests::TemporaryVariable home_{"HOME", folder_.path()};
};

TEST_F(UsedByRuns, ARunThatGoesOnNeedsWhatItsScriptsName) {
  EXPECT_EQ(run_that_uses("abc"), "");
  write("r1/machine0/script", "exec ~/.dtool/trainers/abc/dtool-trainer\n");
  write("r1/machine1/script", "exec true\n");
  write("r2/machine0/rank", "exec ~/.dtool/trainers/def/dtool-trainer\n");
  write("r3/machine0/script", "exec true\n");
  EXPECT_EQ(run_that_uses("abc"), "r1");
  EXPECT_EQ(run_that_uses("def"), "r2");
  EXPECT_EQ(run_that_uses("123"), "");
}

TEST_F(UsedByRuns, ARunThatHasEndedNeedsNothing) {
  write("r1/machine0/script", "abc\n");
  write("r1/machine0/exit_code", "0\n");
  write("r2/machine0/script", "abc\n");
  write("r2/machine0/killed", "10\n");
  EXPECT_EQ(run_that_uses("abc"), "");
  write("r2/machine1/script", "");
  EXPECT_EQ(run_that_uses("abc"), "r2") << "its other machine goes on";
}

TEST_F(UsedByRuns, WhatLiesBesideTheMachinesIsNone) {
  write("r1/machine0/script", "abc\n");
  write("r1/machine0/exit_code", "0\n");
  write("r1/machine0.log", "abc\n");
  write("r1/tree/script", "abc\n");
  EXPECT_EQ(run_that_uses("abc"), "") << "it has ended";
  write("r2/machine0/script", "def\n");
  write("r2/tree/script", "abc\n");
  EXPECT_EQ(run_that_uses("abc"), "") << "the tree is the user's";
}

/// Processes that bear a run's id.
class RunningRuns : public UsedByRuns {
 protected:
  ~RunningRuns() override {
    for (const pid_t each : processes_) {
      ::kill(each, SIGKILL);
      wait_for_child(each);
    }
  }

  void start(const std::string& run, const std::vector<std::string>& prefix = {}) {
    const tests::TemporaryVariable id("DTOOL_RUN_ID", run);
    std::vector<std::string> words = prefix;
    words.insert(words.end(), {"sh", "-c", "echo > \"$1\"; exec sleep 100", "sh", ready_});
    processes_.push_back(start_program(words, "", Input::nothing));
    for (int i = 0; i < 2000 && !std::filesystem::exists(ready_); ++i) ::usleep(5000);
    EXPECT_TRUE(std::filesystem::remove(ready_)) << run;
  }

  static bool is_told(const std::string& run) {
    const std::vector<std::string> all = running_runs();
    EXPECT_TRUE(std::ranges::is_sorted(all));
    return std::ranges::count(all, run) == 1;
  }

  const std::string ready_ = folder_.path() / "ready";
  std::vector<pid_t> processes_;
};

TEST_F(RunningRuns, AreTheRunsOfProcessesHereThatHaveNotEnded) {
  write("going/machine0/script", "");
  write("ended/machine0/exit_code", "0\n");
  for (const char* run : {"going", "going", "ended", "unknown", "/elsewhere/run"}) start(run);
  EXPECT_TRUE(is_told("going"));
  EXPECT_FALSE(is_told("ended"));
  EXPECT_FALSE(is_told("unknown")) << "a process may hold its port";
  EXPECT_TRUE(is_told("/elsewhere/run")) << "nothing is known of it";
  EXPECT_FALSE(is_told(""));
}

TEST_F(RunningRuns, AreNoOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "root alone can start a process of another user";
  write("theirs/machine0/script", "");
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  start("theirs", {"setpriv", "--reuid", "65534", "--clear-groups"});
  EXPECT_FALSE(is_told("theirs"));
}

}  // namespace
}  // namespace dtool::host
