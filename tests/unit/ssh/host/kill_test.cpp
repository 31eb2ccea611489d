// SPDX-License-Identifier: MIT
// The mark that keeps a run from starting, and the end of its processes.
#include "ssh/host/kill.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

class Kill : public testing::Test {
 protected:
  KillReply kill() {
    KillRequest request;
    request.run_id = run_id;
    request.state_folders = {folder.path() / "run" / "machine0"};
    request.grace_ms = 100;
    return kill_run(request);
  }
  /// A process that bears the run's id, once its script says so, and does not descend from this.
  void start(const std::string& script) const {
    const fs::path ready = folder.path() / "ready";
    fs::remove(ready);
    const std::string whole = script + "; : >\"$0\"; for i in {1..600}; do sleep 0.1; done";
    const ChildResult started =
        run_program({"env", "DTOOL_RUN_ID=" + run_id, "bash", "-c",
                     "bash -c \"$1\" \"$0\" >/dev/null 2>&1 &", ready, whole},
                    std::chrono::seconds(20));
    ASSERT_TRUE(started.ok());
    for (int i = 0; i < 1000 && !fs::exists(ready); ++i) pause(std::chrono::milliseconds(10));
  }

  const tests::TemporaryFolder folder;
  const std::string run_id = "kill_test_" + std::to_string(::getpid());
};

TEST_F(Kill, LeavesAMarkWhereTheRunMayStart) {
  fs::create_directory(folder.path() / "run");
  const KillReply reply = kill();
  EXPECT_TRUE(fs::exists(folder.path() / "run" / "machine0" / "killed"));
  EXPECT_EQ(reply.no_folder + reply.unmarked + reply.locked, "");
  EXPECT_EQ(reply.ended, 0);
}

TEST_F(Kill, SaysThatTheRunsFolderIsMissingAndMakesNone) {
  EXPECT_EQ(kill().no_folder, folder.path() / "run");
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
}

TEST_F(Kill, SaysThatItsMarkCannotBeWritten) {
  folder.write("run/machine0", "a file stands there");
  EXPECT_EQ(kill().unmarked, folder.path() / "run" / "machine0");
}

TEST_F(Kill, HandsOnWhatTheSchedulersEndOfTheJobAnswers) {
  folder.write("run/machine0/end",
               "answer cancelled \"job of $run_id\"\nanswer job_left nodes\n"
               "answer vouched_for slurm\nanswer other words\n");
  const KillReply reply = kill();
  EXPECT_EQ(reply.cancelled, "job of " + run_id);
  EXPECT_EQ(reply.job_left, "nodes");
  EXPECT_EQ(reply.vouched_for, "slurm");
}

TEST_F(Kill, SaysWhenTheSchedulersEndOfTheJobFails) {
  folder.write("run/machine0/end", "kill -9 $$\n");
  const KillReply reply = kill();
  EXPECT_EQ(reply.cancelled + reply.vouched_for, "");
}

TEST_F(Kill, EndsByTermWhatAnswersItAndByKillWhatDoesNot) {
  for (const bool answers : {true, false}) {
    start(answers ? ":" : "trap : TERM");
    const KillReply reply = kill();
    EXPECT_GE(reply.ended, 1);
    EXPECT_EQ(reply.forced > 0, !answers) << reply.forced;
    EXPECT_TRUE(reply.left.empty());
  }
}

TEST_F(Kill, ItsMarkSaysHowLongItMayTake) {
  const fs::path state = folder.path() / "run/machine0";
  fs::create_directories(state);
  for (const auto& [grace, seconds] : {std::pair{100, "90"}, {5999, "95"}}) {
    KillRequest request{run_id, {}, {state}, grace};
    kill_run(request);
    EXPECT_EQ(read_line(state / "killed"), seconds);
  }
}

/// The leader of a session, which has no run's id, and what it has begun.
struct KillOfASession : Kill {
  void SetUp() override {
    fs::create_directories(state);
    const fs::path pids = folder.path() / "pids";
    const std::string script = "sleep 51 & echo $$ $! >" + pids.string() + ".new; mv " +
                               pids.string() + ".new " + pids.string() + "; wait";
    ASSERT_EQ(start_detached({"/bin/sh", "-c", script}, folder.path(), Descriptor(), ""), "");
    for (int i = 0; i < 1000 && !fs::exists(pids); ++i) pause(std::chrono::milliseconds(10));
    std::ifstream(pids) >> leader >> child;
    const std::vector<Process> processes = read_processes();
    begun = std::ranges::find(processes, leader, &Process::pid)->start;
  }
  void TearDown() override {
    for (const pid_t pid : {leader, child}) {
      if (runs(pid)) ::kill(pid, SIGKILL);
    }
  }
  static bool runs(pid_t pid) {
    const std::vector<Process> processes = read_processes();
    const auto found = std::ranges::find(processes, pid, &Process::pid);
    return found != processes.end() && !found->is_dead();
  }
  void record(std::uint64_t start, const std::string& boot) const {
    std::ofstream(state / "process") << leader << " " << start << " " << boot << "\n";
  }

  const tests::TemporaryVariable of_no_run{"DTOOL_RUN_ID", ""};
  const fs::path state = folder.path() / "run/machine0";
  pid_t leader = 0;
  pid_t child = 0;
  std::uint64_t begun = 0;
};

TEST_F(KillOfASession, EndsTheLeaderAndWhatItHasBegun) {
  record(begun, std::string(current_boot()));
  const KillReply reply = kill();
  EXPECT_EQ(reply.ended, 2);
  EXPECT_FALSE(runs(leader));
  EXPECT_FALSE(runs(child));
}

TEST_F(KillOfASession, LeavesAnotherProcessWithThatNumberAlone) {
  record(begun + 1, std::string(current_boot()));
  EXPECT_EQ(kill().ended, 0);
  record(begun, "another-boot");
  EXPECT_EQ(kill().ended, 0);
  EXPECT_TRUE(runs(leader));
  EXPECT_TRUE(runs(child));
}

TEST_F(KillOfASession, NamesWhatWritesIntoTheRunsLogWithoutItsId) {
  record(begun, std::string(current_boot()));
  const fs::path log = folder.path() / "out.log";
  std::ofstream(log) << "";
  fs::create_symlink(log, state / "log");
  const std::string script = "exec sleep 52 >>" + log.string();
  Child writing({"/bin/sh", "-c", "unset DTOOL_RUN_ID; " + script}, "/");
  pid_t pid = 0;
  for (int i = 0; i < 500 && pid == 0; ++i) {
    pause(std::chrono::milliseconds(10));
    for (const Process& each : read_processes()) {
      if (each.parent == ::getpid() && command_of(each.pid, 60) == "sleep 52") pid = each.pid;
    }
  }
  const KillReply reply = kill();
  const std::string named = std::to_string(pid) + " sleep 52";
  EXPECT_EQ(
      std::ranges::count_if(reply.unseen, [&](const auto& each) { return each.ends_with(named); }),
      1);
}

TEST_F(Kill, EndsTheScreenOfThatNameAndNoOther) {
  const std::string session = "dtool_unit_" + std::to_string(::getpid());
  for (const char* end : {"", "2"}) {
    const ChildResult begun =
        run_program({"screen", "-dmS", session + end, "sleep", "53"}, std::chrono::seconds(20));
    if (begun.is_missing) GTEST_SKIP() << "no screen is installed";
    ASSERT_TRUE(begun.ok());
  }
  const auto listed = [] { return run_program({"screen", "-ls"}, std::chrono::seconds(20)).out; };
  const KillReply reply = kill_run({"", {session}, {}, 100});
  EXPECT_GE(reply.ended, 1);
  EXPECT_TRUE(reply.left.empty());
  EXPECT_EQ(listed().find("." + session + "\t"), std::string::npos) << listed();
  EXPECT_NE(listed().find("." + session + "2\t"), std::string::npos) << listed();
  kill_run({"", {session + "2"}, {}, 100});
  EXPECT_EQ(listed().find("." + session), std::string::npos) << listed();
}

}  // namespace
}  // namespace dtool::host
