// SPDX-License-Identifier: MIT
// The mark that keeps a run from starting, and the end of its processes.
#include "ssh/host/kill.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "ssh/host/child.h"
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

}  // namespace
}  // namespace dtool::host
