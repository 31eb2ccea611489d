// SPDX-License-Identifier: MIT
#include "sync/relay/relay_tree.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtool::tree_sync {
namespace {

using namespace std::chrono_literals;
using From = RelayTree::From;
using End = RelayTree::End;
using Sum = RelayTree::Sum;
using Source = RelayTree::Source;

constexpr Source kLauncher{From::launcher};
constexpr Source kNobodyYet{From::nobody_yet};

Source from(std::size_t host) {
  return {From::host, host};
}

class RelayTreeTest : public ::testing::Test {
 protected:
  Source ask(std::size_t host, Sum sum = Sum::known) { return tree_.source_for(host, now_, sum); }

  RelayTree tree_;
  RelayTree::Time now_{100s};
};

TEST_F(RelayTreeTest, TheFirstHostHasItFromTheLauncherAndTheOthersWaitUntilThatOneServes) {
  EXPECT_EQ(ask(5), kLauncher);
  EXPECT_EQ(ask(1), kNobodyYet);
  tree_.serves(5);
  EXPECT_EQ(ask(1), from(5));
}

TEST_F(RelayTreeTest, NothingIsPassedOnBeforeItIsKnownWhatItMustBe) {
  EXPECT_EQ(ask(0, Sum::unknown), kLauncher);
  tree_.serves(0);
  EXPECT_EQ(ask(1, Sum::unknown), kNobodyYet);
  EXPECT_EQ(ask(1), from(0));
}

TEST_F(RelayTreeTest, TheLauncherSendsOnceAndTheTreeIsAsDeepAsTheLogarithmOfItsHosts) {
  std::vector<int> depth(200, -1);
  for (bool is_done = false; !is_done; now_ += 20ms) {
    is_done = true;
    std::vector<std::size_t> begun;
    for (std::size_t host = 0; host < depth.size(); ++host) {
      if (depth[host] >= 0) continue;
      const Source source = ask(host);
      is_done = is_done && source != kNobodyYet;
      if (source == kNobodyYet) continue;
      depth[host] = source == kLauncher ? 0 : depth[source.host] + 1;
      begun.push_back(host);
    }
    for (const std::size_t host : begun) tree_.serves(host);
  }
  EXPECT_EQ(std::count(depth.begin(), depth.end(), 0), 1);
  EXPECT_EQ(*std::max_element(depth.begin(), depth.end()), 5) << "1 + 3 + 9 + 27 + 81 are too few";
}

TEST_F(RelayTreeTest, AHostThatServesNobodyIsNotWaitedFor) {
  EXPECT_EQ(ask(0), kLauncher);
  EXPECT_EQ(ask(1), kNobodyYet);
  tree_.serves_nobody(0);
  EXPECT_EQ(ask(1), kLauncher);
}

TEST_F(RelayTreeTest, AHostThatDoesNotBeginToServeIsNotWaitedForLong) {
  EXPECT_EQ(ask(0), kLauncher);
  EXPECT_EQ(ask(1), kNobodyYet);
  now_ += RelayTree::kSilence;
  EXPECT_EQ(ask(1), kLauncher);
  EXPECT_EQ(ask(2), kNobodyYet) << "that one may serve";
}

TEST_F(RelayTreeTest, NobodyIsToldToHaveItFromAHostThatGetsNothing) {
  ask(0);
  tree_.serves(0);
  now_ += RelayTree::kSilence;
  EXPECT_EQ(ask(1), kLauncher);
  tree_.got_more(0, now_);
  EXPECT_EQ(ask(2), from(0));
  now_ += 2 * RelayTree::kSilence;
  tree_.got_all(0);
  EXPECT_EQ(ask(3), from(0));
}

TEST_F(RelayTreeTest, AHostServesFewUnlessOthersWaitForLong) {
  ask(0);
  tree_.serves(0);
  for (const std::size_t host : {1, 2, 3}) {
    EXPECT_EQ(ask(host), from(0));
    tree_.serves_nobody(host);
  }
  EXPECT_EQ(ask(4), kNobodyYet);
  EXPECT_EQ(ask(5), kNobodyYet);
  tree_.ended(2, End::over, now_);
  EXPECT_EQ(ask(4), from(0)) << "there is room again";
  now_ += RelayTree::kCrowded;
  tree_.got_more(0, now_);
  EXPECT_EQ(ask(5), from(0));
}

TEST_F(RelayTreeTest, AHostThatHasEndedServesNobody) {
  ask(0);
  tree_.serves(0);
  tree_.ended(0, End::over, now_);
  EXPECT_EQ(ask(1), kLauncher);
}

TEST_F(RelayTreeTest, AHostThatMissedItHasItFromAnotherOneThenFromTheLauncher) {
  ask(0);
  tree_.serves(0);
  EXPECT_EQ(ask(1), from(0));
  tree_.serves(1);
  EXPECT_EQ(ask(2), from(1)) << "which serves fewer";
  tree_.ended(2, End::missed, now_);
  EXPECT_EQ(ask(2), from(0));
  EXPECT_EQ(ask(3), from(1)) << "for others that one may do";
  tree_.ended(2, End::missed, now_);
  EXPECT_EQ(ask(2), kLauncher);
}

TEST_F(RelayTreeTest, AHostThatFailsTwoIsNamedToNobodyElse) {
  ask(0);
  tree_.serves(0);
  ask(1);
  ask(2);
  tree_.ended(1, End::missed, now_);
  EXPECT_EQ(ask(3), from(0));
  tree_.ended(2, End::missed, now_);
  EXPECT_EQ(ask(4), kNobodyYet) << "3 may serve";
  tree_.ended(3, End::missed, now_);
  EXPECT_EQ(ask(4), kLauncher);
}

TEST_F(RelayTreeTest, WhatAHostMissesSinceItsParentMissedItIsNotItsParentsFault) {
  ask(0);
  tree_.serves(0);
  ask(1);
  tree_.serves(1);
  EXPECT_EQ(ask(2), from(1));
  EXPECT_EQ(ask(3), from(0));
  EXPECT_EQ(ask(4), from(1));
  for (const std::size_t host : {1, 2, 4}) tree_.ended(host, End::missed, now_);
  tree_.serves_nobody(3);
  EXPECT_EQ(ask(1), kLauncher) << "from 0 it had nothing";
  tree_.serves(1);
  EXPECT_EQ(ask(2), from(1));
  EXPECT_EQ(ask(4), from(0)) << "which serves no more than that";
}

TEST_F(RelayTreeTest, WhatAHostMissesWhileItsParentWaitsToIsNotItsParentsFault) {
  ask(0);
  tree_.serves(0);
  for (const std::size_t host : {1, 2, 3}) EXPECT_EQ(ask(host), from(0));
  now_ += RelayTree::kSilence;
  for (const std::size_t host : {1, 2, 3}) tree_.ended(host, End::missed, now_);
  tree_.got_more(0, now_);
  EXPECT_EQ(ask(1), from(0));
}

TEST_F(RelayTreeTest, AHostThatGaveSomethingElseIsNotTrustedByAnybody) {
  ask(0);
  tree_.serves(0);
  ask(1);
  tree_.ended(1, End::spoilt, now_);
  EXPECT_EQ(ask(2), kLauncher);
  tree_.serves(2);
  EXPECT_EQ(ask(1), from(2));
}

}  // namespace
}  // namespace dtool::tree_sync
