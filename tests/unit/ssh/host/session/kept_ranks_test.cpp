// SPDX-License-Identifier: MIT
// The processes that mpirun started, where one of them fails.
#include "ssh/host/session/rank.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "ssh/host/child.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/job.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

class KeptRanksTest : public testing::Test {
 protected:
  ~KeptRanksTest() override {
    for (const pid_t each : started_) ::kill(-each, SIGKILL);
    for (const pid_t each : started_) wait_for_child(each);
  }

  /// A shell that runs the script in the folder, in a group of its own.
  pid_t run(const std::string& script) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      if (::chdir(folder_.path().c_str()) == 0)
        ::execlp("bash", "bash", "-c", script.c_str(), nullptr);
      ::_exit(kCannotRun);
    }
    started_.push_back(child);
    return child;
  }

  /// In a group of its own. It takes note of TERM, and goes on.
  pid_t start(const std::string& name) {
    const pid_t child = run("trap 'echo TERM > " + name + ".heard' TERM; echo > " + name +
                            ".ready; for _ in {1..600}; do sleep 0.05; done");
    for (int i = 0; i < 2000 && folder_.read(name + ".ready").empty(); ++i) host::pause(10ms);
    return child;
  }

  /// The record of attempt 2's local rank, whose process has ended with that code.
  void end(int local_rank, const std::string& code) {
    const std::string record = "ranks/2." + std::to_string(local_rank);
    folder_.write(record, "2 0\n");
    folder_.write(record + ".code", code + "\n");
  }

  void begin(int local_rank, pid_t pid) {
    folder_.write("ranks/2." + std::to_string(local_rank),
                  std::to_string(pid) + " " + std::to_string(find_process(pid)->start) + "\n");
  }

  /// Attempt 2's ranks from 4 on.
  int keep(int count, pid_t mpirun = 0) {
    return keep_ranks({folder_.path(), "2", "4", std::to_string(count), std::to_string(mpirun)});
  }

  /// The file first_failure, which is emptied.
  std::string first_failure() {
    const std::string text = folder_.read("first_failure");
    std::filesystem::remove(folder_.path() / "first_failure");
    return text;
  }

  const tests::TemporaryFolder folder_;
  std::vector<pid_t> started_;
};

TEST_F(KeptRanksTest, AreEndedByTermAndThenByKillWithTheirProgramsOnceOneHasFailed) {
  const pid_t rank = start("rank");
  const pid_t program = start("program");
  begin(0, rank);
  folder_.write("ranks/2.0.program", std::to_string(program) + "\n");
  end(1, "7");
  EXPECT_EQ(keep(2), 7);
  EXPECT_EQ(first_failure(), "5\n");
  EXPECT_EQ(folder_.read("rank.heard"), "TERM\n");
  for (const pid_t each : {rank, program}) EXPECT_EQ(wait_for_child(each, 5s), kKilled);
  EXPECT_EQ(folder_.read("program.heard"), "") << "its rank passes TERM on";
  started_.clear();
}

TEST_F(KeptRanksTest, AreRefusedWithoutTheirWords) {
  for (const std::size_t count : {4U, 6U})
    EXPECT_THROW(keep_ranks(std::vector<std::string>(count, "1")), std::runtime_error);
  EXPECT_THROW(keep_ranks({folder_.path(), "2", "x", "1", "0"}), std::runtime_error);
}

TEST_F(KeptRanksTest, EndWellWhenAllHave) {
  end(0, "0");
  end(1, "0");
  EXPECT_EQ(keep(2), 0);
  EXPECT_EQ(first_failure(), "");
  end(2, "7");
  EXPECT_EQ(keep(2), 0) << "the third is another machine's";
}

TEST_F(KeptRanksTest, TheFirstThatFailedByItselfIsNamed) {
  end(0, "0");
  end(1, "7");
  end(2, "8");
  EXPECT_EQ(keep(3), 7);
  EXPECT_EQ(first_failure(), "5\n");
  folder_.write("ranks/2.1.told", "");
  EXPECT_EQ(keep(3), 8) << "mpirun told the other to end";
  EXPECT_EQ(first_failure(), "6\n");
}

TEST_F(KeptRanksTest, WhatFollowsFromAnothersFailureIsNamedOnlyIfNothingElseFailed) {
  end(0, "3");
  folder_.write("last_words.2.4", "a peer is gone\n");
  EXPECT_EQ(keep(1), 3);
  EXPECT_EQ(first_failure(), "4\n");
  end(1, "7");
  EXPECT_EQ(keep(2), 7);
  EXPECT_EQ(first_failure(), "5\n");
  end(1, "3");
  folder_.write("last_words.2.5", "a peer is gone\n");
  EXPECT_EQ(keep(2), 3) << "both have lost a peer";
  EXPECT_EQ(first_failure(), "4\n");
  end(2, "8");
  folder_.write("log", "Connection closed by peer\n");
  EXPECT_EQ(keep(3), 3) << "a victim by its last line";
  EXPECT_EQ(first_failure(), "4\n");
}

TEST_F(KeptRanksTest, ACauseThatIsSeenAfterWhatFollowsFromItIsNamed) {
  end(0, "3");
  folder_.write("last_words.2.4", "a peer is gone\n");
  begin(1, run("sleep 0.1; echo 7 > ranks/2.1.code"));
  EXPECT_EQ(keep(2), 7);
  EXPECT_EQ(first_failure(), "5\n");
}

TEST_F(KeptRanksTest, OneWhoseEndIsNotKnownWasKilled) {
  folder_.write("ranks/2.0", "2 0\n");
  EXPECT_EQ(keep(1), kKilled);
  EXPECT_EQ(first_failure(), "dtool's own process for rank 4\n");
  const std::string first = "1 " + std::to_string(find_process(1)->start) + "\n";
  for (const std::string& record : {first, "1 0\n"s, "x\n"s, ""s, "99999999 1\n"s}) {
    folder_.write("ranks/2.0", record);
    EXPECT_EQ(keep(1), kKilled) << record;
  }
}

TEST_F(KeptRanksTest, TheRankThatTorchrunNotedIsNamed) {
  end(0, "7");
  folder_.write("first_failure", "9\n");
  EXPECT_EQ(keep(1), 7);
  EXPECT_EQ(first_failure(), "9\n");
}

TEST_F(KeptRanksTest, ThatHaveNotBegunOrNotEndedAreWaitedForAndSoIsMpirun) {
  begin(0, run("sleep 0.1; echo 0 > ranks/2.0.code"));
  run("sleep 0.3; echo 2 0 > ranks/2.1; sleep 0.05; echo 0 > ranks/2.1.code");
  const pid_t mpirun = run("sleep 0.6; echo > mpirun_ended");
  std::erase(started_, mpirun);
  folder_.write("ranks/2.1.code", "0\n");
  EXPECT_EQ(keep(2, mpirun), 0);
  EXPECT_EQ(folder_.read("mpirun_ended"), "\n");
}

TEST_F(KeptRanksTest, OfASessionAreLeftToIt) {
  const pid_t rank = start("rank");
  end(0, "7");
  begin(1, rank);
  folder_.write("supervise", "");
  EXPECT_EQ(keep(2), 7);
  EXPECT_EQ(wait_for_child(rank, 0s), std::nullopt);
  EXPECT_EQ(folder_.read("rank.heard"), "");
}

TEST_F(KeptRanksTest, AreNotKilledIfTheyEndByTermAndTheOtherMachinesAreWaitedFor) {
  const pid_t program = start("program");
  const pid_t rank =
      run("trap 'exit 9' TERM; echo > ready; for _ in {1..500}; do sleep 0.02; done");
  for (int i = 0; i < 2000 && folder_.read("ready").empty(); ++i) host::pause(10ms);
  const pid_t mpirun = run("sleep 0.5; echo > mpirun_ended");
  std::erase(started_, mpirun);
  const pid_t others = start("others");
  end(0, "7");
  begin(1, rank);
  begin(2, others);
  folder_.write("ranks/2.1.program", std::to_string(program) + "\n");
  const Time began = time_since_boot();
  EXPECT_EQ(keep(2, mpirun), 7);
  EXPECT_LT(time_since_boot() - began, 4s);
  EXPECT_EQ(wait_for_child(rank, 5s), 9);
  std::erase(started_, rank);
  EXPECT_EQ(wait_for_child(program, 0s), std::nullopt);
  EXPECT_EQ(folder_.read("mpirun_ended"), "\n");
  EXPECT_EQ(folder_.read("others.heard"), "") << "the third is another machine's";
}

TEST_F(KeptRanksTest, ThatWereToldToEndAreNotTheEndAtOnce) {
  end(0, "7");
  folder_.write("ranks/2.0.told", "");
  run("sleep 0.5; rm ranks/2.0.told");
  EXPECT_EQ(keep(1), 7);
}

TEST_F(KeptRanksTest, ARanksFailureThatIsSeenAfterMpirunsIsTheCause) {
  const pid_t mpirun = run("exit 9");
  std::erase(started_, mpirun);
  run("sleep 0.5; echo 7 > ranks/2.0.code; echo 2 0 > ranks/2.0");
  std::filesystem::create_directory(folder_.path() / "ranks");
  EXPECT_EQ(keep(1, mpirun), 7);
  EXPECT_EQ(first_failure(), "4\n");
}

TEST_F(KeptRanksTest, WhatMpirunSaidIsTheCauseIfNoneIsSeenAfterIt) {
  const pid_t mpirun = run("exit 9");
  std::erase(started_, mpirun);
  folder_.write("mpirun.said", "no slots\n");
  testing::internal::CaptureStdout();
  EXPECT_EQ(keep(1, mpirun), 9);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "no slots\n");
  EXPECT_EQ(first_failure(), "mpirun\n");
}

TEST_F(KeptRanksTest, AnotherChildsEndIsNotTaken) {
  for (const char* code : {"0", "7"}) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(9);
    siginfo_t ended;
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
    end(0, code);
    EXPECT_EQ(keep(1), std::stoi(code));
    EXPECT_EQ(wait_for_child(child), 9);
  }
}

/// Two processes that have ended, kept since 1000 s.
constexpr KeptRanksSeen kBothEnded{1000s, 0, 2, {}, false, {}};

TEST(KeptEnd, IsGoodOnceAllHaveEndedAndMpirunToo) {
  EXPECT_EQ(find_kept_end(kBothEnded, 1000s), KeptEnd{0});
  KeptRanksSeen seen = kBothEnded;
  seen.waiting = 1;
  EXPECT_EQ(find_kept_end(seen, 2000s), std::nullopt);
  seen = kBothEnded;
  seen.has_mpirun = true;
  EXPECT_EQ(find_kept_end(seen, 2000s), std::nullopt);
}

TEST(KeptEnd, WaitsForACauseAfterMpirunFailed) {
  KeptRanksSeen seen = kBothEnded;
  seen.failed_mpirun = {9, 1200s};
  for (const int waiting : {0, 1}) {
    seen.waiting = waiting;
    EXPECT_EQ(find_kept_end(seen, 1205s - 1ms), std::nullopt);
    EXPECT_EQ(find_kept_end(seen, 1205s), (KeptEnd{9, true}));
  }
}

TEST(KeptEnd, WaitsTwiceAsLongForACauseOfRanksThatWereToldToEnd) {
  KeptRanksSeen seen = kBothEnded;
  seen.told_at = 1200s;
  EXPECT_EQ(find_kept_end(seen, 1210s - 1ms), std::nullopt);
  EXPECT_EQ(find_kept_end(seen, 1210s), KeptEnd{143});
}

TEST(KeptEnd, ComesWhereMpirunHasStartedNothingFor300Seconds) {
  KeptRanksSeen seen{1000s, 2, 0, {}, false, {}};
  EXPECT_EQ(find_kept_end(seen, 1300s - 1ms), std::nullopt);
  EXPECT_EQ(find_kept_end(seen, 1300s),
            (KeptEnd{1, false, "mpirun on machine 0 has started no process here in 300 s"}));
  seen.begun = 1;
  EXPECT_EQ(find_kept_end(seen, 1300s), std::nullopt);
}

}  // namespace
}  // namespace dtool::host
