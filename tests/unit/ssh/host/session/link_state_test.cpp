// SPDX-License-Identifier: MIT
// When a machine counts its way to machine 0's session as lost, and when it tries it again.
#include "ssh/host/session/report_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr Time kBegin = 1000s;

/// Machine 1 of two, which waits 60 s for an answer.
Supervision settings(int place = 1, int places = 2) {
  return {place, "h1", places, 0, 60s, "10.0.0.1", 29400};
}

const std::string kRefusal = "nothing listens at 10.0.0.1:29400: the session on machine 0 is gone";
const std::string kSilence =
    "machine 1 (h1) has had no answer from machine 0 at 10.0.0.1:29400 for 60 s";
const std::string kNoProof =
    "what answers at 10.0.0.1:29400 does not prove that it is the session on machine 0";

class LinkStateTest : public testing::Test {
 protected:
  /// As a session does, second by second.
  void look_until(Time end) {
    for (; now_ <= end; now_ += 1s) EXPECT_FALSE(state_.look(now_));
    now_ = end;
  }

  LinkState state_{settings(), kBegin};
  Time now_ = kBegin;
};

TEST_F(LinkStateTest, TheFirstTryIsAtOnce) {
  EXPECT_EQ(state_.next_try(), kBegin);
  EXPECT_EQ(state_.take_loss(kBegin + 1000s), std::nullopt) << "nothing was tried yet";
}

TEST_F(LinkStateTest, AfterEachFailedTryThePauseDoublesUpToALongestOne) {
  // Machine 1's tries come 7 ms after those of a machine 0.
  for (const Time pause : {250ms, 500ms, 1000ms, 2000ms, 2008ms, 2008ms}) {
    state_.lost_connection(LinkFault::silent, false, kBegin);
    EXPECT_EQ(state_.next_try() - kBegin, pause + 7ms);
  }
  LinkState of_many(settings(30, 1000), kBegin);
  Time last{};
  for (int i = 0; i < 20; ++i) {
    of_many.lost_connection(LinkFault::silent, false, kBegin);
    last = of_many.next_try() - kBegin;
  }
  EXPECT_EQ(last, 4000ms + 10ms) << "30 times 7, less the whole hundreds";
}

TEST_F(LinkStateTest, AConnectionThatWasGoodIsMadeAgainAtOnce) {
  for (int i = 0; i < 4; ++i) state_.lost_connection(LinkFault::silent, false, kBegin);
  state_.lost_connection(LinkFault::silent, true, kBegin);
  EXPECT_EQ(state_.next_try() - kBegin, 125ms + 7ms);
  state_.lost_connection(LinkFault::silent, false, kBegin);
  EXPECT_EQ(state_.next_try() - kBegin, 250ms + 7ms) << "the pause grows from its beginning";
  state_.heard_answer(kBegin);
  state_.lost_connection(LinkFault::silent, false, kBegin);
  EXPECT_EQ(state_.next_try() - kBegin, 250ms + 7ms) << "an answer counts as much";
}

TEST_F(LinkStateTest, ANewReportHastensTheNextTryAndPutsNoneOff) {
  for (int i = 0; i < 4; ++i) state_.lost_connection(LinkFault::silent, false, kBegin);
  state_.wants_connection(kBegin);
  EXPECT_EQ(state_.next_try(), kBegin + 250ms);
  state_.wants_connection(kBegin + 100ms);
  EXPECT_EQ(state_.next_try(), kBegin + 250ms);
}

TEST_F(LinkStateTest, RefusalsAreALossOnceASessionWouldHaveBegun) {
  state_.lost_connection(LinkFault::refused, false, kBegin);
  state_.lost_connection(LinkFault::refused, false, kBegin + 3s);
  EXPECT_FALSE(state_.is_refused(kBegin + 5s - 1ms));
  EXPECT_EQ(state_.take_loss(kBegin + 5s - 1ms), std::nullopt);
  EXPECT_TRUE(state_.is_refused(kBegin + 5s));
  EXPECT_EQ(state_.take_loss(kBegin + 5s), kRefusal);
}

TEST_F(LinkStateTest, RefusalsAloneAreNoSilence) {
  look_until(kBegin + 100s);
  state_.lost_connection(LinkFault::refused, false, now_);
  EXPECT_EQ(state_.take_loss(now_), std::nullopt);
}

TEST_F(LinkStateTest, ARefusalIsNoneAnyMoreOnceSomethingElseHappens) {
  state_.lost_connection(LinkFault::refused, false, kBegin);
  state_.lost_connection(LinkFault::silent, false, kBegin + 1s);
  EXPECT_FALSE(state_.is_refused(kBegin + 50s));
  EXPECT_EQ(state_.take_loss(kBegin + 50s), std::nullopt);
  state_.heard_answer(kBegin + 50s);
  state_.lost_connection(LinkFault::refused, false, kBegin + 51s);
  EXPECT_FALSE(state_.is_refused(kBegin + 52s)) << "an answer came since the first one";
}

TEST_F(LinkStateTest, SilenceIsALossOnceItLastedAsLongAsTheRunAllows) {
  state_.heard_answer(kBegin + 7s);
  state_.lost_connection(LinkFault::silent, true, kBegin + 10s);
  EXPECT_EQ(state_.take_loss(kBegin + 67s - 1ms), std::nullopt);
  EXPECT_EQ(state_.take_loss(kBegin + 67s), kSilence);
}

TEST_F(LinkStateTest, WhatNeverProvedItselfIsToldAtOnceAndALostProofOnceItIsSilent) {
  LinkState known(settings(), kBegin);
  known.heard_answer(kBegin);
  for (LinkState* each : {&state_, &known})
    each->lost_connection(LinkFault::unproven, false, kBegin);
  EXPECT_EQ(state_.take_loss(kBegin), kNoProof);
  EXPECT_EQ(known.take_loss(kBegin + 60s - 1ms), std::nullopt);
  EXPECT_EQ(known.take_loss(kBegin + 60s), kNoProof);
}

TEST_F(LinkStateTest, AnAnswerEndsWhateverWasWrong) {
  state_.lost_connection(LinkFault::unproven, false, kBegin);
  state_.heard_answer(kBegin + 1s);
  EXPECT_EQ(state_.take_loss(kBegin + 1s), std::nullopt);
  EXPECT_EQ(state_.take_loss(kBegin + 100s), std::nullopt) << "it is connected";
  state_.lost_connection(LinkFault::silent, true, kBegin + 2s);
  EXPECT_EQ(state_.take_loss(kBegin + 61s), kSilence) << "and no stranger answered since";
}

TEST_F(LinkStateTest, ALossIsToldOnceAndOnceMoreAfterAnAnswer) {
  state_.lost_connection(LinkFault::silent, false, kBegin);
  EXPECT_EQ(state_.take_loss(kBegin + 60s), kSilence);
  EXPECT_EQ(state_.take_loss(kBegin + 61s), std::nullopt);
  state_.lost_connection(LinkFault::refused, false, kBegin + 61s);
  EXPECT_EQ(state_.take_loss(kBegin + 66s), kRefusal) << "another sentence";
  state_.heard_answer(kBegin + 70s);
  state_.lost_connection(LinkFault::refused, false, kBegin + 70s);
  EXPECT_EQ(state_.take_loss(kBegin + 75s), kRefusal);
}

TEST_F(LinkStateTest, AProcessThatDidNotLookForLongerThanATurnWasFrozen) {
  EXPECT_FALSE(state_.look(kBegin + 5s));
  EXPECT_TRUE(state_.look(kBegin + 10s + 1ms));
  EXPECT_FALSE(state_.look(kBegin + 11s));
}

TEST_F(LinkStateTest, AfterAFreezeAllWaitsBeginAnew) {
  state_.lost_connection(LinkFault::silent, false, kBegin);
  EXPECT_TRUE(state_.look(kBegin + 60s));
  EXPECT_EQ(state_.take_loss(kBegin + 120s - 1ms), std::nullopt);
  EXPECT_EQ(state_.take_loss(kBegin + 120s), kSilence);
}

TEST_F(LinkStateTest, AfterAFreezeAnEarlierRefusalSaysNothing) {
  state_.lost_connection(LinkFault::refused, false, kBegin);
  EXPECT_TRUE(state_.look(kBegin + 60s));
  EXPECT_FALSE(state_.is_refused(kBegin + 61s));
  EXPECT_EQ(state_.take_loss(kBegin + 61s), std::nullopt);
  state_.lost_connection(LinkFault::refused, false, kBegin + 62s);
  EXPECT_FALSE(state_.is_refused(kBegin + 66s));
  EXPECT_TRUE(state_.is_refused(kBegin + 67s));
}

TEST_F(LinkStateTest, AfterAFreezeAnEarlierStrangerSaysNothing) {
  state_.lost_connection(LinkFault::unproven, false, kBegin);
  EXPECT_TRUE(state_.look(kBegin + 60s));
  EXPECT_EQ(state_.take_loss(kBegin + 61s), std::nullopt);
}

TEST_F(LinkStateTest, AFreezeBreaksNoConnectionThatIsGood) {
  state_.heard_answer(kBegin);
  EXPECT_TRUE(state_.look(kBegin + 60s));
  EXPECT_EQ(state_.take_loss(kBegin + 200s), std::nullopt);
}

TEST_F(LinkStateTest, ATryThatTakesLongerThanFiveSecondsIsGivenUp) {
  EXPECT_FALSE(state_.is_late(kBegin, kBegin + 5s));
  EXPECT_TRUE(state_.is_late(kBegin, kBegin + 5s + 1ms));
}

TEST_F(LinkStateTest, ASilentConnectionIsReplacedLongBeforeItCountsAsLost) {
  const Time beat = time_between_signs(settings());
  EXPECT_FALSE(state_.is_stale(kBegin, kBegin + 10s + beat));
  EXPECT_TRUE(state_.is_stale(kBegin, kBegin + 10s + beat + 1ms));
  Supervision hasty = settings();
  hasty.lost_after = 15s;
  const LinkState state(hasty, kBegin);
  EXPECT_FALSE(state.is_stale(kBegin, kBegin + 5s));
  EXPECT_TRUE(state.is_stale(kBegin, kBegin + 5s + 1ms)) << "a third of what the run allows";
}

}  // namespace
}  // namespace dtool::host
