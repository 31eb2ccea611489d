// SPDX-License-Identifier: MIT
// How several machines are becomes the cause of a failed run.
#include "cli/watch/status_answer.h"

#include <gtest/gtest.h>

#include "tests/unit/cli/watch/read_status.h"

namespace dtool::cli {
namespace {

using tests::read_status;

TEST(CauseOf, TheProgramsOwnWordGoesBeforeAGuess) {
  EXPECT_FALSE(cause_of({read_status("pid=7\nup_s=1"), read_status("pid=7\nexit_code=0")}));
  const auto cause = cause_of(
      {read_status("pid=7"), read_status("pid=7\nexit_code=1\nsaid=rank 1 was killed", 1)});
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->text, "rank 1 was killed");
}

TEST(CauseOf, OfSeveralMachinesWordsTheFirstMachinesCount) {
  const auto cause = cause_of({read_status("pid=7\nexit_code=1\nsaid=first"),
                               read_status("pid=7\nexit_code=1\nsaid=second", 1)});
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->text, "first");
}

TEST(CauseOf, WhatTheSupervisionFoundGoesBeforeAllAndTheFailedMachinesLinesCome) {
  const std::string cause = "\ncause=rank 1 on machine 1 (h2) ended with exit code 3";
  const auto found = cause_of(
      {read_status("pid=7\nexit_code=143\nstopped=yes\nended_s_ago=9" + cause),
       read_status("pid=7\nexit_code=3\nended_s_ago=1\nsaid=x\nline=a\nline=b" + cause, 1)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text, "rank 1 on machine 1 (h2) ended with exit code 3");
  EXPECT_EQ(found->lines, (std::vector<std::string>{"a", "b"}));
}

TEST(CauseOf, ItsMachineAndRankAreFieldsAndAreNotReadFromTheSentence) {
  const auto found = [](const std::string& place) {
    const std::string cause = "\ncause=rank 0 on machine 0 lost rank 3" + place;
    return cause_of({read_status("pid=7\nexit_code=3\nended_s_ago=9" + cause),
                     read_status("pid=7\nexit_code=1\nended_s_ago=1" + cause, 1)})
        .value();
  };
  EXPECT_EQ(found("\ncause_machine=1\ncause_rank=3").machine, 1);
  EXPECT_EQ(found("\ncause_machine=1\ncause_rank=3").rank, 3);
  EXPECT_EQ(found("\ncause_machine=1").machine, 1);
  EXPECT_EQ(found("\ncause_machine=1").rank, std::nullopt);
  EXPECT_EQ(found("\ncause_machine=9\ncause_rank=3").rank, std::nullopt) << "there is none";
  // A run of an earlier version.
  EXPECT_EQ(found("").rank, std::nullopt);
  EXPECT_EQ(found("").machine, 0);
  EXPECT_EQ(found("").text, "rank 0 on machine 0 lost rank 3");
}

TEST(CauseOf, TheLinesAreOfTheRankThatItNamesAndSayWhose) {
  const std::string cause =
      "\ncause=rank 3 on machine 1 (h2) is sick\ncause_machine=1\ncause_rank=3";
  const auto found = cause_of(
      {read_status("pid=7\nexit_code=1\nended_s_ago=9\nline=closed by peer" + cause),
       read_status("pid=7\nexit_code=1\nstopped=yes\nended_s_ago=1\nline=sick" + cause, 1)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->lines, std::vector<std::string>{"sick"});
  EXPECT_EQ(found->where, "rank 3 on machine 1 (h2)");
  const auto guessed = cause_of({read_status("pid=7\nexit_code=1\nfailed_rank=2\nline=sick")});
  EXPECT_EQ(guessed->where, "rank 2 on machine 0 (h1)");
}

TEST(CauseOf, WhoseProgramSaysItHasTheRankThatFailedFirstThere) {
  const auto cause = cause_of({read_status("pid=7\nexit_code=0"),
                               read_status("pid=7\nexit_code=1\nsaid=sick\nfailed_rank=2", 1)});
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->machine, 1);
  EXPECT_EQ(cause->rank, 2);
}

TEST(CauseOf, WhatAUserEndedWasEndedByTheUser) {
  const auto found = cause_of({read_status("pid=7\nkilled=yes\ncause=rank 1 is gone")});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text, "machine 0 (h1) was ended by dtool kill");
}

TEST(CauseOf, OtherwiseTheMachineThatFailedFirstIsNamed) {
  const auto cause =
      cause_of({read_status("pid=7\nexit_code=1\nended_s_ago=2\nlast_line=second"),
                read_status("pid=7\nexit_code=137\nended_s_ago=9\nlast_line=first", 1)});
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->text, "machine 1 (h2) ended with exit code 137 (signal 9): first");
}

TEST(CauseOf, AHostThatWasRebootedGoesBeforeThoseThatMissedIt) {
  const auto cause =
      cause_of({read_status("pid=7\nexit_code=1"), read_status("pid=7\nrebooted=1", 1)});
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->text, "machine 1 (h2) was rebooted while it ran");
}

TEST(EarlierFailureOf, TheNewestCountsWithTheLogOfTheMachineThatItNames) {
  EXPECT_FALSE(earlier_failure_of({read_status("pid=7\nup_s=1")}));
  const auto failure =
      earlier_failure_of({read_status("pid=7\nup_s=1\nfailed_attempt=1 10 1 sick", 0),
                          read_status("pid=7\nup_s=1\nfailed_attempt=1 20 1 sick", 1),
                          read_status("pid=7\nup_s=1\nfailed_attempt=0 30 2 old", 2)});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->attempt, 1);
  EXPECT_EQ(failure->machine, 1);
  EXPECT_EQ(failure->log_bytes, 20U);
  EXPECT_EQ(failure->text, "sick");
}

TEST(EarlierFailureOf, AMachineThatTheRunDoesNotHaveIsNone) {
  EXPECT_FALSE(earlier_failure_of({read_status("pid=7\nup_s=1\nfailed_attempt=0 10 5 sick")}));
}

TEST(EarlierFailureOf, TheLengthOfALogIsNotAnotherMachines) {
  const auto failure = earlier_failure_of(
      {read_status("pid=7\nup_s=1\nfailed_attempt=0 10 1 sick"), read_status("pid=7\nup_s=1", 1)});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->log_bytes, std::nullopt);
}

}  // namespace
}  // namespace dtool::cli
