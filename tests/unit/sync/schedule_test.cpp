// SPDX-License-Identifier: MIT
#include "sync/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtool::tree_sync {
namespace {

using namespace std::chrono_literals;
using From = Schedule::From;
using End = Schedule::End;
using Serving = Schedule::Serving;
using Source = Schedule::Source;
using Sum = Schedule::Sum;

constexpr Source kLauncher{From::launcher};
constexpr Source kNobodyYet{From::nobody_yet};
constexpr std::uint64_t kBytes = 10'000'000;

Source from(std::size_t host) {
  return {From::host, host};
}

class ScheduleTest : public ::testing::Test {
 protected:
  /// Three other hosts have made the beginning.
  ScheduleTest() {
    for (const std::size_t host : {97, 98, 99}) {
      ask(host, 9);
      ended(host, End::over, 9);
    }
  }
  Source ask(std::size_t host, std::size_t parcel = 0, Sum sum = Sum::known) {
    return schedule_.source_for(host, parcel, now_, sum);
  }
  void serves(std::size_t host) { schedule_.set_serving(host, Serving::yes); }
  void ended(std::size_t host, End end, std::size_t parcel = 0) {
    schedule_.ended(host, parcel, end, now_);
  }
  /// The host takes the parcel from wherever it may, in so much time.
  void takes(std::size_t host, std::size_t parcel, std::chrono::milliseconds time) {
    ask(host, parcel);
    serves(host);
    now_ += time;
    schedule_.got_more(host, parcel, kBytes, now_);
    schedule_.got_all(host, parcel, now_);
    ended(host, End::serves_on, parcel);
  }

  Schedule schedule_;
  Schedule::Time now_{100s};
};

TEST_F(ScheduleTest, TheFirstHostHasItFromTheLauncherAndTheOthersWaitUntilThatOneServes) {
  EXPECT_EQ(ask(5), kLauncher);
  EXPECT_EQ(ask(1), kNobodyYet);
  serves(5);
  EXPECT_EQ(ask(1), from(5));
}

TEST(Schedule, TwoOfManyHostsHaveTheFirstParcelFromTheLauncher) {
  Schedule schedule;
  const Schedule::Time now{100s};
  const auto ask = [&](std::size_t host, std::size_t parcel) {
    return schedule.source_for(host, parcel, now, Sum::known);
  };
  EXPECT_EQ(ask(0, 0), kLauncher);
  EXPECT_EQ(ask(1, 0), kNobodyYet) << "with two hosts it would leave the launcher twice";
  EXPECT_EQ(ask(2, 0), kLauncher);
  EXPECT_EQ(ask(1, 0), kNobodyYet);
  EXPECT_EQ(ask(3, 0), kNobodyYet);
  schedule.set_serving(2, Serving::yes);
  EXPECT_EQ(ask(1, 0), from(2));
  EXPECT_EQ(ask(2, 1), kLauncher) << "it may be the faster of the two";
}

TEST_F(ScheduleTest, NothingIsPassedOnBeforeItIsKnownWhatItMustBe) {
  EXPECT_EQ(ask(0, 0, Sum::unknown), kLauncher);
  serves(0);
  EXPECT_EQ(ask(1, 0, Sum::unknown), kNobodyYet);
  EXPECT_EQ(ask(1), from(0));
}

TEST_F(ScheduleTest, AParcelIsAwaitedUntilItIsClearFromWhereItComes) {
  takes(0, 0, 1s);
  EXPECT_FALSE(schedule_.is_awaited(0));
  EXPECT_EQ(ask(1, 0, Sum::unknown), kNobodyYet);
  EXPECT_TRUE(schedule_.is_awaited(0));
  EXPECT_EQ(ask(1), from(0));
  EXPECT_FALSE(schedule_.is_awaited(0));
  ended(1, End::missed);
  EXPECT_TRUE(schedule_.is_awaited(0));
  ended(1, End::over);
  EXPECT_FALSE(schedule_.is_awaited(0)) << "it has failed";
  schedule_.forget(0);
  EXPECT_FALSE(schedule_.is_awaited(0)) << "it may be made anew before a host asks for it";
}

TEST_F(ScheduleTest, AHostIsExpectedUntilTheFirstByteHasComeFromIt) {
  ask(0);
  serves(0);
  EXPECT_FALSE(schedule_.is_expected_by_any(0));
  EXPECT_EQ(ask(1), from(0));
  EXPECT_TRUE(schedule_.is_expected_by_any(0));
  schedule_.got_more(1, 0, 1, now_);
  EXPECT_FALSE(schedule_.is_expected_by_any(0));
}

TEST_F(ScheduleTest, HostsFormAChain) {
  EXPECT_EQ(ask(0), kLauncher);
  for (std::size_t host = 1; host <= Schedule::kDeep; ++host) {
    serves(host - 1);
    EXPECT_EQ(ask(host), from(host - 1));
  }
}

TEST_F(ScheduleTest, AHostThatIsKnownToServeIsNamedAsSoonAsItBeginsAnotherParcel) {
  takes(0, 0, 1s);
  takes(1, 0, 1s);
  EXPECT_EQ(ask(1, 1), kLauncher);
  EXPECT_EQ(ask(0, 1), from(1));
}

TEST_F(ScheduleTest, AHostServesOneUnlessOthersWaitForLong) {
  ask(0);
  serves(0);
  EXPECT_EQ(ask(1), from(0));
  schedule_.set_serving(1, Serving::no);
  EXPECT_EQ(ask(2), kNobodyYet);
  EXPECT_EQ(ask(3), kNobodyYet);
  schedule_.got_all(1, 0, now_);
  EXPECT_EQ(ask(2), from(0)) << "there is room again";
  schedule_.set_serving(2, Serving::no);
  now_ += Schedule::kCrowded - 1ms;
  schedule_.got_more(0, 0, 1, now_);
  EXPECT_EQ(ask(3), kNobodyYet);
  now_ += 1ms;
  EXPECT_EQ(ask(3), from(0));
}

TEST_F(ScheduleTest, OfHostsThatAllServeSomeTheFirstIsNamed) {
  ask(0);
  serves(0);
  ask(1);
  serves(1);
  ask(2);
  schedule_.set_serving(2, Serving::no);
  EXPECT_EQ(ask(3), kNobodyYet);
  now_ += Schedule::kCrowded;
  schedule_.got_more(0, 0, 1, now_);
  schedule_.got_more(1, 0, 1, now_);
  EXPECT_EQ(ask(3), from(0));
}

TEST_F(ScheduleTest, AHostThatServesNobodyIsNotWaitedFor) {
  EXPECT_EQ(ask(0), kLauncher);
  EXPECT_EQ(ask(1), kNobodyYet);
  schedule_.set_serving(0, Serving::no);
  EXPECT_EQ(ask(1), kLauncher);
}

TEST_F(ScheduleTest, AHostThatDoesNotBeginToServeIsNotWaitedForLong) {
  EXPECT_EQ(ask(0), kLauncher);
  now_ += Schedule::kSilence - 1ms;
  EXPECT_EQ(ask(1), kNobodyYet);
  now_ += 1ms;
  EXPECT_EQ(ask(1), kLauncher);
  EXPECT_EQ(ask(2), kNobodyYet) << "that one may serve";
}

TEST_F(ScheduleTest, AHostThatNeverSaysWhetherItServesIsWaitedForWithOneParcel) {
  EXPECT_EQ(ask(0), kLauncher);
  EXPECT_EQ(ask(1), kNobodyYet);
  ended(0, End::serves_on);
  EXPECT_EQ(ask(1), kLauncher);
  ended(1, End::serves_on);
  EXPECT_EQ(ask(0, 1), kLauncher);
  EXPECT_EQ(ask(1, 1), kLauncher);
}

TEST_F(ScheduleTest, NobodyIsToldToHaveItFromAHostThatGetsNothing) {
  ask(0);
  serves(0);
  now_ += Schedule::kSilence;
  EXPECT_EQ(ask(1), kLauncher);
  schedule_.got_more(0, 0, 1, now_);
  EXPECT_EQ(ask(2), from(0));
  serves(2);
  schedule_.got_all(2, 0, now_);
  now_ += 2 * Schedule::kSilence;
  EXPECT_EQ(ask(3), from(2)) << "which has everything, and was the last to begin";
}

TEST_F(ScheduleTest, AHostThatHasFailedServesNobody) {
  ask(0);
  serves(0);
  ended(0, End::over);
  EXPECT_EQ(ask(1), kLauncher);
}

TEST_F(ScheduleTest, AHostServesItsLastParcels) {
  for (std::size_t parcel = 0; parcel <= Schedule::kKept; ++parcel) takes(0, parcel, 1s);
  EXPECT_EQ(ask(1, 0), kLauncher) << "it keeps that no longer";
  for (std::size_t parcel = 1; parcel <= Schedule::kKept; ++parcel) {
    EXPECT_EQ(ask(parcel + 1, parcel), from(0)) << parcel;
    schedule_.got_all(parcel + 1, parcel, now_);
  }
}

TEST_F(ScheduleTest, AHostThatMissedItHasItFromAnotherOneThenFromTheLauncher) {
  ask(0);
  serves(0);
  EXPECT_EQ(ask(1), from(0));
  serves(1);
  EXPECT_EQ(ask(2), from(1));
  ended(2, End::missed);
  schedule_.got_all(1, 0, now_);
  EXPECT_EQ(ask(2), from(0));
  EXPECT_EQ(ask(3), from(1)) << "for others that one may do";
  ended(2, End::missed);
  EXPECT_EQ(ask(2), kLauncher);
  EXPECT_EQ(ask(2, 1), kLauncher) << "so it has all parcels: no host ever reached it";
}

TEST_F(ScheduleTest, AHostThatHasHadAParcelFromAHostTriesOthersAgain) {
  takes(0, 0, 1s);
  takes(1, 0, 1s);
  takes(2, 1, 1s);
  EXPECT_EQ(ask(1, 1), from(2));
  ended(1, End::missed, 1);
  takes(3, 1, 1s);
  EXPECT_EQ(ask(1, 1), from(3));
  ended(1, End::missed, 1);
  EXPECT_EQ(ask(1, 1), kLauncher);
  ended(1, End::serves_on, 1);
  takes(4, 2, 1s);
  EXPECT_EQ(ask(1, 2), from(4));
}

TEST_F(ScheduleTest, AHostThatFailsTwoIsNamedToNobodyElse) {
  ask(0);
  serves(0);
  for (const std::size_t host : {1, 2}) {
    EXPECT_EQ(ask(host), from(0));
    ended(host, End::missed);
  }
  EXPECT_EQ(ask(3), kLauncher);
}

TEST_F(ScheduleTest, AfterSomeTriesItComesFromTheLauncher) {
  ask(0);
  serves(0);
  for (int i = 0; i < Schedule::kTries; ++i) {
    EXPECT_EQ(ask(1), from(0)) << i;
    now_ += Schedule::kSilence;
    ended(1, End::missed);  // for want of bytes there
    schedule_.got_more(0, 0, static_cast<std::uint64_t>(i) + 1, now_);
  }
  EXPECT_EQ(ask(1), kLauncher);
}

TEST_F(ScheduleTest, WhatAHostMissesSinceItsParentMissedItIsNotItsParentsFault) {
  ask(0);
  serves(0);
  ask(1);
  serves(1);
  EXPECT_EQ(ask(2), from(1));
  ended(1, End::missed);
  ended(2, End::missed);
  EXPECT_EQ(ask(1), kLauncher) << "from 0 it had nothing";
  EXPECT_EQ(ask(2), from(1));
}

TEST_F(ScheduleTest, WhatAHostMissesWhileItsParentWaitsToIsNotItsParentsFault) {
  ask(0);
  serves(0);
  EXPECT_EQ(ask(1), from(0));
  now_ += Schedule::kSilence;
  ended(1, End::missed);
  schedule_.got_more(0, 0, 1, now_);
  EXPECT_EQ(ask(1), from(0));
}

TEST_F(ScheduleTest, AHostThatGaveSomethingElseIsNotTrustedByAnybody) {
  ask(0);
  serves(0);
  ask(1);
  schedule_.got_all(1, 0, now_);
  ended(1, End::spoilt);
  EXPECT_EQ(ask(2), kLauncher);
  serves(2);
  EXPECT_EQ(ask(1), from(2));
}

TEST_F(ScheduleTest, AHostThatPassedOnWrongBytesWhichItWasGivenIsForgiven) {
  ask(0);
  serves(0);
  EXPECT_EQ(ask(1), from(0));
  serves(1);
  EXPECT_EQ(ask(2), from(1));
  ended(2, End::spoilt);
  EXPECT_EQ(ask(3), kNobodyYet) << "it may be its fault, and 0 has no hand free";
  ended(1, End::spoilt);
  EXPECT_EQ(ask(1), kLauncher);
  EXPECT_EQ(ask(3), from(1));
}

TEST_F(ScheduleTest, AHostThatComplainsOfAllIsBelievedFourTimes) {
  for (std::size_t parcel = 0; parcel < 6; ++parcel) {
    takes(parcel + 1, parcel, 1s);
    const bool is_believed = parcel < Schedule::kComplaints;
    EXPECT_EQ(ask(0, parcel), is_believed ? from(parcel + 1) : kLauncher) << parcel;
    if (!is_believed) continue;
    schedule_.got_all(0, parcel, now_);
    ended(0, End::spoilt, parcel);
    ended(0, End::over, parcel);
  }
}

TEST_F(ScheduleTest, AHostThatIsMuchSlowerPassesOnToSlowOnesAlone) {
  takes(0, 0, 1s);
  takes(1, 0, 1s);
  takes(2, 0, 11s);
  EXPECT_TRUE(schedule_.is_slow(2));
  EXPECT_FALSE(schedule_.is_slow(0));
  takes(3, 0, 11s);
  EXPECT_EQ(ask(2, 1), kLauncher);
  EXPECT_EQ(ask(1, 1), kLauncher);
  serves(1);
  EXPECT_EQ(ask(3, 1), from(1)) << "which has a hand for a slow one";
  EXPECT_EQ(ask(0, 1), from(1)) << "and one for another";
}

TEST_F(ScheduleTest, AHostThatWaitedForASlowOneIsNotSlowOnceItHasShownIt) {
  takes(0, 0, 1s);
  takes(1, 0, 1s);
  takes(2, 0, 11s);
  EXPECT_TRUE(schedule_.is_slow(2));
  takes(2, 1, 2s);
  EXPECT_FALSE(schedule_.is_slow(2));
}

TEST_F(ScheduleTest, OneHostThatSaysItWasFastMakesNobodySlow) {
  takes(0, 0, 1s);
  takes(1, 0, 1ms);
  takes(2, 0, 2s);
  EXPECT_FALSE(schedule_.is_slow(0));
  EXPECT_FALSE(schedule_.is_slow(2));
}

TEST_F(ScheduleTest, AParcelThatIsMadeAnewHasNoHistory) {
  takes(0, 0, 1s);
  schedule_.forget(0);
  EXPECT_EQ(ask(1, 0), kLauncher);
}

}  // namespace
}  // namespace dtool::tree_sync
