// SPDX-License-Identifier: MIT
// What machine 0 decides on the reports of all machines.
#include "ssh/host/session/coordinator.h"

#include <gtest/gtest.h>

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

std::string cause_of(const std::optional<Decision>& decision) {
  return decision ? decision->text : "no decision";
}

/// Three machines, whose signs of life come where a test says so.
class CoordinatorTest : public testing::Test {
 protected:
  static Supervision settings(int max_restarts) {
    return {0, "h0", 3, max_restarts, 60s, "127.0.0.1", 1, {"h0", "h1", "h2"}};
  }

  void begin(const Supervision& all) {
    coordinator_.emplace(all, now_);
    for (int place = 0; place < 3; ++place) say(place, {0, Standing::running});
  }

  void say(int place, const Report& report) { coordinator_->take(place, report, now_); }
  std::optional<Decision> decide() { return coordinator_->decide(now_); }

  /// Lets time pass, second by second, in which these machines repeat their reports. The first
  /// decision.
  std::optional<Decision> pass(Time duration, const std::vector<std::pair<int, Report>>& alive) {
    for (Time rest = duration; rest > 0s; rest -= 1s) {
      now_ += 1s;
      for (const auto& [place, report] : alive) say(place, report);
      if (auto decision = decide()) return decision;
    }
    return std::nullopt;
  }

  Time now_ = 1000s;
  std::optional<Coordinator> coordinator_;
};

const Report kRunning{0, Standing::running};
const Report kEnded{0, Standing::ended};
const Report kStopped{0, Standing::stopped, 143};

TEST_F(CoordinatorTest, IsDoneWhenAllHaveEnded) {
  begin(settings(0));
  say(0, kEnded);
  say(1, kEnded);
  EXPECT_EQ(decide(), std::nullopt);
  say(2, kEnded);
  EXPECT_EQ(decide(), (Decision{0, Verb::done, {}, {}}));
  EXPECT_EQ(decide(), std::nullopt);
}

TEST_F(CoordinatorTest, IsDoneWhenTheMachineHasEndedWellThatTheRunEndsWith) {
  Supervision all = settings(0);
  all.ends_with = 1;
  begin(all);
  say(0, kEnded);
  EXPECT_EQ(decide(), std::nullopt);
  say(2, {0, Standing::failed, 1, "lost its server"});  // an aftermath that is heard first
  say(1, kEnded);
  EXPECT_EQ(decide(), (Decision{0, Verb::finish, {}, {}}));
  EXPECT_EQ(decide(), std::nullopt);
}

TEST_F(CoordinatorTest, AFailureOfTheMachineThatTheRunEndsWithIsAFailure) {
  Supervision all = settings(0);
  all.ends_with = 1;
  begin(all);
  say(1, {0, Standing::failed, 7, "sick"});
  now_ += 500ms;
  EXPECT_EQ(cause_of(decide()), "sick");
}

TEST_F(CoordinatorTest, ListensToOthersForHalfASecondAfterAFailure) {
  begin(settings(0));
  say(1, {0, Standing::failed, 7, "sick", 4});
  EXPECT_TRUE(coordinator_->is_judging());
  EXPECT_EQ(decide(), std::nullopt);
  now_ += 499ms;
  EXPECT_EQ(decide(), std::nullopt);
  now_ += 1ms;
  EXPECT_EQ(decide(), (Decision{0, Verb::end, {}, "sick", CausePlace{1, 4}}));
  say(1, {0, Standing::failed, 7, "sick", 4});  // a sign of life
  EXPECT_FALSE(coordinator_->is_judging());
}

TEST_F(CoordinatorTest, WaitsForNobodyWhereNoneRuns) {
  begin(settings(0));
  say(0, kEnded);
  say(2, kEnded);
  say(1, {0, Standing::failed, 7, "sick"});
  EXPECT_EQ(cause_of(decide()), "sick");
}

TEST_F(CoordinatorTest, AKilledProcessIsTheCauseOfWhatWasHeardBefore) {
  begin(settings(0));
  say(1, {0, Standing::failed, 1, "a peer has gone away"});
  say(2, {0, Standing::failed, 137, "killed"});
  now_ += 1s;
  EXPECT_EQ(cause_of(decide()), "killed");
}

TEST_F(CoordinatorTest, TheFirstFailureIsTheCauseOtherwise) {
  begin(settings(0));
  say(2, {0, Standing::failed, 3, "first"});
  say(1, {0, Standing::failed, 4, "second"});
  now_ += 1s;
  EXPECT_EQ(cause_of(decide()), "first");
}

TEST_F(CoordinatorTest, AMachineThatGaveUpByItselfHasFailed) {
  begin(settings(0));
  say(1, {0, Standing::gone, 1, "it lost machine 0"});
  EXPECT_EQ(cause_of(pass(5s, {{0, kRunning}, {2, kRunning}})), "it lost machine 0");
}

TEST_F(CoordinatorTest, AMachineIsLostAfterAMinuteOfSilence) {
  begin(settings(0));
  const auto decision = pass(60s, {{0, kRunning}, {1, kRunning}});
  EXPECT_EQ(decision, std::nullopt);
  const auto after = pass(2s, {{0, kRunning}, {1, kRunning}});
  EXPECT_EQ(cause_of(after), "machine 2 (h2) was lost: no sign of life for 60 s");
  EXPECT_EQ(after->cause_place, CausePlace{2});
}

TEST_F(CoordinatorTest, HowLongIsASetting) {
  Supervision all = settings(0);
  all.lost_after = 5s;
  begin(all);
  EXPECT_EQ(pass(5s, {{0, kRunning}, {1, kRunning}}), std::nullopt);
  EXPECT_EQ(cause_of(pass(2s, {{0, kRunning}, {1, kRunning}})),
            "machine 2 (h2) was lost: no sign of life for 5 s");
}

TEST_F(CoordinatorTest, SilenceAfterTheEndIsNoLoss) {
  begin(settings(0));
  say(2, kEnded);
  EXPECT_EQ(pass(300s, {{0, kRunning}, {1, kRunning}}), std::nullopt);
}

TEST_F(CoordinatorTest, AMachineThatWasNeverHeardIsNotWatchedAndHopedForTwoMinutes) {
  coordinator_.emplace(settings(0), now_);
  say(0, kEnded);
  say(1, kEnded);
  EXPECT_EQ(pass(120s, {{0, kEnded}, {1, kEnded}}), std::nullopt);
  EXPECT_EQ(pass(2s, {{0, kEnded}, {1, kEnded}}), (Decision{0, Verb::done, {}, {}}));
}

TEST_F(CoordinatorTest, ItsOwnFrozenTimeIsNobodysSilence) {
  begin(settings(0));
  EXPECT_EQ(pass(30s, {{0, kRunning}, {1, kRunning}, {2, kRunning}}), std::nullopt);
  now_ += 500s;
  EXPECT_EQ(decide(), std::nullopt);
  EXPECT_EQ(pass(59s, {{0, kRunning}}), std::nullopt);
  EXPECT_NE(pass(3s, {{0, kRunning}}), std::nullopt);
}

TEST_F(CoordinatorTest, BeginsAgainWithAllThatHaveStopped) {
  begin(settings(1));
  say(1, {0, Standing::failed, 7, "sick"});
  now_ += 1s;
  EXPECT_EQ(decide(), (Decision{0, Verb::gather, {}, "sick", CausePlace{1}}));
  for (int place = 0; place < 2; ++place) say(place, kStopped);
  EXPECT_EQ(decide(), std::nullopt);
  say(2, kStopped);
  EXPECT_EQ(decide(), (Decision{1, Verb::run, {0, 1, 2}, {}}));
  // The second attempt is the last.
  for (int place = 0; place < 3; ++place) say(place, {1, Standing::running});
  say(2, {1, Standing::failed, 8, "again"});
  now_ += 1s;
  EXPECT_EQ(decide(), (Decision{1, Verb::end, {}, "again", CausePlace{2}}));
}

TEST_F(CoordinatorTest, GathersForHalfAMinuteAtMostAndLeavesOutWhoDoesNotAnswer) {
  begin(settings(1));
  say(1, {0, Standing::failed, 7, "sick"});
  now_ += 1s;
  EXPECT_EQ(decide()->verb, Verb::gather);
  const Report running = kRunning;
  EXPECT_EQ(pass(30s, {{0, kStopped}, {1, kStopped}, {2, running}}), std::nullopt);
  EXPECT_EQ(pass(1s, {{0, kStopped}, {1, kStopped}, {2, running}}),
            (Decision{1, Verb::run, {0, 1}, {}}));
}

TEST_F(CoordinatorTest, DoesNotWaitForALostMachine) {
  begin(settings(1));
  EXPECT_EQ(pass(62s, {{0, kRunning}, {1, kRunning}})->verb, Verb::gather);
  say(0, kStopped);
  say(1, kStopped);
  EXPECT_EQ(decide(), (Decision{1, Verb::run, {0, 1}, {}}));
  // It may come back and is told, but nobody watches it.
  say(2, kRunning);
  const Report running{1, Standing::running};
  say(0, running);
  say(1, running);
  EXPECT_EQ(pass(200s, {{0, running}, {1, running}}), std::nullopt);
  EXPECT_EQ(pass(1s, {{0, {1, Standing::ended}}, {1, {1, Standing::ended}}})->verb, Verb::done);
}

TEST_F(CoordinatorTest, ALostMachineThatComesBackWhileOthersStopTakesPart) {
  begin(settings(1));
  EXPECT_EQ(pass(62s, {{0, kRunning}, {1, kRunning}})->verb, Verb::gather);
  say(2, kRunning);
  say(0, kStopped);
  say(1, kStopped);
  EXPECT_EQ(decide(), std::nullopt);
  say(2, kStopped);
  EXPECT_EQ(decide()->places, (std::vector<int>{0, 1, 2}));
}

TEST_F(CoordinatorTest, AMachineThatDiesBetweenTwoAttemptsIsLost) {
  begin(settings(2));
  say(1, {0, Standing::failed, 7, "sick"});
  now_ += 1s;
  decide();
  for (int place = 0; place < 3; ++place) say(place, kStopped);
  EXPECT_EQ(decide()->verb, Verb::run);
  const Report running{1, Standing::running};
  EXPECT_EQ(cause_of(pass(62s, {{0, running}, {1, running}})),
            "machine 2 (h2) was lost: no sign of life for 60 s");
}

TEST_F(CoordinatorTest, AMistakeStaysOne) {
  begin(settings(3));
  say(1, {0, Standing::mistaken, 2, "no such key"});
  now_ += 1s;
  EXPECT_EQ(decide()->verb, Verb::end);
  begin(settings(3));
  say(1, {0, Standing::failed, 2, "exit code 2 of a program"});
  now_ += 1s;
  EXPECT_EQ(decide()->verb, Verb::gather);
}

const Report kFollowed{0, Standing::followed, 3, "a peer is gone"};

TEST_F(CoordinatorTest, WhatFollowsFromAFailureWaitsForIt) {
  begin(settings(0));
  EXPECT_EQ(pass(2s, {{0, kFollowed}, {1, kRunning}, {2, kRunning}}), std::nullopt);
  say(1, {0, Standing::failed, 1, "no memory"});
  EXPECT_EQ(cause_of(decide()), "no memory");
}

TEST_F(CoordinatorTest, WhatFollowsFromAFailureIsTheCauseWhereNothingBetterComes) {
  begin(settings(0));
  EXPECT_EQ(cause_of(pass(5s, {{0, kFollowed}, {1, kRunning}, {2, kRunning}})), "a peer is gone");
  begin(settings(0));
  for (const int place : {0, 1, 2}) say(place, kFollowed);
  EXPECT_EQ(cause_of(decide()), "a peer is gone");
}

TEST_F(CoordinatorTest, AStoppedProcessIsTheCauseOfWhatFollows) {
  begin(settings(0));
  const Report stopped{0, Standing::running, 0, "rank 2 is stopped"};
  EXPECT_EQ(cause_of(pass(5s, {{0, kFollowed}, {1, kRunning}, {2, stopped}})), "rank 2 is stopped");
}

TEST_F(CoordinatorTest, WhatFollowsWaitsForAMachineThatIsSilent) {
  begin(settings(0));
  EXPECT_EQ(pass(6s, {{0, kRunning}, {1, kRunning}}), std::nullopt);
  EXPECT_EQ(cause_of(pass(60s, {{0, kFollowed}, {1, kFollowed}})),
            "machine 2 (h2) was lost: no sign of life for 60 s");
}

TEST_F(CoordinatorTest, WhatFollowsWaitsForASignOfLifeSinceTheFailure) {
  begin(settings(0));
  now_ += 1s;
  say(2, kRunning);
  EXPECT_EQ(pass(6s, {{0, kFollowed}, {1, kFollowed}}), std::nullopt) << "machine 2 may be dead";
  EXPECT_EQ(cause_of(pass(1s, {{2, kRunning}})), "a peer is gone");
}

TEST_F(CoordinatorTest, OneThatHasNotBegunThisAttemptIsWaitedForToo) {
  begin(settings(1));
  say(1, {0, Standing::failed, 7, "sick"});
  now_ += 1s;
  EXPECT_TRUE(decide());
  for (const int place : {0, 1, 2}) say(place, kStopped);
  EXPECT_EQ(decide()->verb, Verb::run);
  now_ += 1s;
  const Report followed{1, Standing::followed, 1, "a peer is gone"};
  EXPECT_EQ(pass(6s, {{0, followed}, {1, followed}}), std::nullopt) << "machine 2 may be dead";
  EXPECT_EQ(cause_of(pass(1s, {{2, {1, Standing::running}}})), "a peer is gone");
}

TEST_F(CoordinatorTest, ItsOwnSleepIsNoSignOfLifeOfOthers) {
  begin(settings(0));
  now_ += 30s;  // it was frozen
  EXPECT_EQ(decide(), std::nullopt);
  EXPECT_EQ(pass(6s, {{0, kFollowed}, {1, kFollowed}}), std::nullopt) << "machine 2 may be dead";
  EXPECT_EQ(cause_of(pass(60s, {{0, kFollowed}, {1, kFollowed}})),
            "machine 2 (h2) was lost: no sign of life for 60 s");
}

TEST_F(CoordinatorTest, WhereNoOtherMachineIsHeardItBlamesNoneOfThem) {
  begin(settings(0));
  const auto decision = pass(62s, {{0, kRunning}});
  EXPECT_EQ(cause_of(decision),
            "machine 0 (h0) has had no sign of life of any other for 60 s: it was cut off, or all "
            "others were lost");
  EXPECT_EQ(decision->cause_place, CausePlace{0});
}

TEST_F(CoordinatorTest, OneThatHasEndedAndIsNotHeardSaysThatMachineZeroWasCutOff) {
  begin(settings(0));
  say(1, kEnded);
  EXPECT_EQ(pass(62s, {{0, kEnded}})->cause_place, CausePlace{0});
}

TEST_F(CoordinatorTest, AMachineThatGaveUpIsTheCauseOnlyIfNoneIsKnownToHaveFailed) {
  const Report gave_up{0, Standing::gone, 1, "a peer is gone"};
  begin(settings(0));
  now_ += 1s;
  say(1, gave_up);
  EXPECT_EQ(cause_of(pass(62s, {{0, kFollowed}})),
            "machine 2 (h2) was lost: no sign of life for 60 s");
  begin(settings(0));
  say(0, kFollowed);
  say(1, gave_up);
  EXPECT_EQ(cause_of(pass(5s, {{2, kRunning}})), "a peer is gone");
}

TEST_F(CoordinatorTest, OneThatMissedNoMoreThanASignIsHeard) {
  for (const auto& [silence, named] :
       std::vector<std::pair<Time, int>>{{4s, 2}, {5s, 0}}) {  // signs come every 2.03 s
    begin(settings(0));
    EXPECT_EQ(pass(61s - silence, {{0, kRunning}, {1, kRunning}}), std::nullopt);
    EXPECT_EQ(pass(silence, {{0, kRunning}}), std::nullopt);
    EXPECT_EQ(pass(1s, {{0, kRunning}})->cause_place, CausePlace{named});
  }
}

TEST_F(CoordinatorTest, LooksForLostMachinesOnceASecond) {
  begin(settings(0));
  EXPECT_EQ(pass(60s, {{0, kRunning}, {1, kEnded}}), std::nullopt);
  say(0, kEnded);  // so that a loss would be judged at once
  now_ += 999ms;
  EXPECT_EQ(decide(), std::nullopt);
  now_ += 1ms;
  EXPECT_NE(decide(), std::nullopt);
}

TEST_F(CoordinatorTest, ItsOwnMachineIsNotWatched) {
  begin(settings(0));
  EXPECT_EQ(pass(300s, {{1, kRunning}, {2, kRunning}}), std::nullopt);
}

TEST_F(CoordinatorTest, FiveSecondsAreNoFrozenTime) {
  begin(settings(0));
  for (int i = 0; i < 12; ++i) {
    now_ += 5s;
    for (const int place : {0, 1}) say(place, kRunning);
    EXPECT_EQ(decide(), std::nullopt);
  }
  EXPECT_NE(pass(2s, {{0, kRunning}, {1, kRunning}}), std::nullopt);
}

TEST_F(CoordinatorTest, ALossIsJudgedAtOnceWhereNoOtherMachineRuns) {
  begin(settings(0));
  EXPECT_EQ(cause_of(pass(61s, {{0, kEnded}, {1, kEnded}})),
            "machine 2 (h2) was lost: no sign of life for 60 s");
}

TEST_F(CoordinatorTest, ACauseIsWaitedForThreeSeconds) {
  begin(settings(0));
  say(0, kFollowed);
  now_ += 2999ms;
  for (const int place : {1, 2}) say(place, kRunning);
  EXPECT_EQ(decide(), std::nullopt);
  now_ += 1ms;
  EXPECT_EQ(cause_of(decide()), "a peer is gone");
}

TEST_F(CoordinatorTest, AMachineThatHasEndedIsASignOfLife) {
  begin(settings(0));
  EXPECT_EQ(cause_of(pass(62s, {{0, kRunning}, {1, kEnded}})),
            "machine 2 (h2) was lost: no sign of life for 60 s");
}

TEST_F(CoordinatorTest, AMachineThatGoesSaysNoNewFailure) {
  begin(settings(0));
  say(1, kFollowed);
  say(1, {0, Standing::gone, 3, "a peer is gone"});
  say(2, {0, Standing::failed, 1, "no memory"});
  now_ += 1s;
  EXPECT_EQ(cause_of(decide()), "no memory");
}

TEST_F(CoordinatorTest, AMachineThatGivesUpBeforeItHeardOfItsAttemptHasFailed) {
  begin(settings(2));
  say(1, {0, Standing::failed, 7, "sick"});
  now_ += 1s;
  decide();
  for (const int place : {0, 2}) say(place, kStopped);
  say(1, {0, Standing::gone, 7, "sick"});
  EXPECT_EQ(decide()->places, (std::vector<int>{0, 2}));
  say(1, {0, Standing::gone, 7, "sick"});
  now_ += 1s;
  EXPECT_EQ(decide(), std::nullopt) << "it takes no part any more";
  say(2, {0, Standing::gone, 1, "it lost machine 0"});
  EXPECT_EQ(cause_of(pass(5s, {{0, {1, Standing::running}}})), "it lost machine 0");
}

TEST_F(CoordinatorTest, AMachineThatGaveUpInAnEarlierAttemptIsNotWaitedFor) {
  begin(settings(2));
  say(1, {0, Standing::failed, 7, "sick"});
  now_ += 1s;
  decide();
  for (const int place : {0, 1, 2}) say(place, kStopped);
  EXPECT_EQ(decide()->places, (std::vector<int>{0, 1, 2}));
  for (const int place : {0, 1}) say(place, {1, Standing::running});
  // Cut off from now on, it does not hear of the new attempt.
  EXPECT_EQ(cause_of(pass(62s, {{0, {1, Standing::running}}, {1, {1, Standing::running}}})),
            "machine 2 (h2) was lost: no sign of life for 60 s");
  say(2, {0, Standing::gone, 143, "it lost machine 0"});
  for (const int place : {0, 1}) say(place, {1, Standing::stopped, 143});
  EXPECT_EQ(decide(), (Decision{2, Verb::run, {0, 1}, {}}));
}

TEST_F(CoordinatorTest, ReportsOfAnotherAttemptOrOfNoMachineDecideNothing) {
  begin(settings(0));
  say(1, {3, Standing::failed, 7, "of another attempt"});
  coordinator_->take(3, {0, Standing::failed, 7, "of no machine"}, now_);
  coordinator_->take(-1, {0, Standing::failed, 7, "of no machine"}, now_);
  now_ += 2s;
  EXPECT_EQ(decide(), std::nullopt);
}

TEST_F(CoordinatorTest, HearsTheLastWordsOfAll) {
  begin(settings(0));
  say(1, {0, Standing::failed, 7, "sick"});
  now_ += 1s;
  EXPECT_EQ(decide()->verb, Verb::end);
  for (int place = 0; place < 3; ++place) {
    EXPECT_FALSE(coordinator_->has_all_gone(now_));
    say(place, {0, Standing::gone, 1, "sick"});
  }
  EXPECT_TRUE(coordinator_->has_all_gone(now_));
}

}  // namespace
}  // namespace dtool::host
