// SPDX-License-Identifier: MIT
// Which connection of a machine counts, and what is told on it.
#include "ssh/host/session/report_port.h"

#include <gtest/gtest.h>

namespace dtool::host {
namespace {

const Decision kEnd{0, Verb::end, {}, "sick"};

TEST(PortState, TheNewestConnectionOfAMachineCounts) {
  PortState state;
  EXPECT_EQ(state.admit(1, 10), std::nullopt);
  EXPECT_EQ(state.admit(2, 20), std::nullopt);
  EXPECT_EQ(state.admit(1, 11), 10);
  EXPECT_FALSE(state.counts(10));
  EXPECT_EQ(state.connections(), (std::vector<int>{11, 20}));
}

TEST(PortState, AnOldConnectionThatIsDroppedLateTakesNoNewerOneAway) {
  PortState state;
  state.admit(1, 10);
  state.admit(1, 11);
  state.drop(10);
  EXPECT_EQ(state.admit(1, 12), 11);
  state.drop(12);
  EXPECT_EQ(state.admit(1, 13), std::nullopt);
}

TEST(PortState, ReportsAreCountedAnewOnEachConnection) {
  PortState state;
  state.admit(1, 10);
  state.take(10);
  state.take(10);
  EXPECT_EQ(state.answer(10).taken, 2U);
  state.admit(1, 11);
  state.take(11);
  EXPECT_EQ(state.answer(11).taken, 1U);
}

TEST(PortState, ADecisionIsToldOnceOnEachConnection) {
  PortState state;
  state.admit(1, 10);
  EXPECT_EQ(state.answer(10).decision, Decision{}) << "of the first attempt";
  EXPECT_EQ(state.answer(10).decision, std::nullopt);
  state.decide(kEnd);
  EXPECT_EQ(state.answer(10).decision, kEnd);
  EXPECT_EQ(state.answer(10).decision, std::nullopt);
  state.admit(1, 11);
  EXPECT_EQ(state.answer(11).decision, kEnd);
}

}  // namespace
}  // namespace dtool::host
