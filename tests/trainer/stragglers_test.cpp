// SPDX-License-Identifier: MIT
// When a rollout is cut short.
#include "trainer/reinforcement/rollout.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "tests/trainer/ranks.h"

using namespace dtool::trainer;

namespace {

/// Longer than a fault may take: nothing here ends by it.
constexpr std::chrono::minutes kNever(10);

}  // namespace

TEST(Stragglers, AreCutShortByTheRanksThatAreNeededAndByNoFewer) {
  on_every_rank(3, Machines::one, [](const Meeting& meeting) {
    Stragglers stragglers(meeting, 0.6, kNever);
    stragglers.begin(1);
    if (meeting.place.rank == 0) {
      stragglers.finish();
      EXPECT_FALSE(meeting.store->check({"rollout/1/enough"}));
      meeting.store->set("test/first", std::vector<std::uint8_t>{1});
    } else if (meeting.place.rank == 1) {
      meeting.store->wait({"test/first"});
      EXPECT_FALSE(stragglers.enough_have_finished());
      stragglers.finish();
    }
    while (!stragglers.enough_have_finished()) std::this_thread::yield();
  });
}

TEST(Stragglers, AShareOfTheRanksIsRoundedUpAndNoneOrAllIsNone) {
  EXPECT_EQ(ranks_to_wait_for(0.6, 3), 2);
  EXPECT_EQ(ranks_to_wait_for(0.55, 20), 11) << "a little more than 11 in binary";
  EXPECT_EQ(ranks_to_wait_for(0.01, 8), 1);
  EXPECT_EQ(ranks_to_wait_for(0.5, 2), 1);
  EXPECT_EQ(ranks_to_wait_for(0.87, 8), 7);
  for (const double none : {0.0, 0.99, 1.0}) EXPECT_EQ(ranks_to_wait_for(none, 8), 0) << none;
  EXPECT_EQ(ranks_to_wait_for(0.5, 1), 0);
}

TEST(Stragglers, AreNeitherCountedNorCutShortWhereAllAreNeeded) {
  on_every_rank(2, Machines::one, [](const Meeting& meeting) {
    {
      Stragglers stragglers(meeting, 1, kNever);
      stragglers.begin(1);
      stragglers.finish();
      EXPECT_FALSE(stragglers.enough_have_finished());
    }
    EXPECT_FALSE(meeting.store->check({"rollout/1/finished"}));
    EXPECT_FALSE(meeting.store->check({"rollout/1/enough"})) << "nobody waits for it";
  });
}

TEST(Stragglers, ARolloutThatIsOverIsNotAskedForAgain) {
  on_every_rank(2, Machines::one, [](const Meeting& meeting) {
    if (meeting.place.rank == 1) return;  // one of two is enough
    Stragglers stragglers(meeting, 0.5, kNever);
    for (const std::int64_t rollout : {1, 2}) {
      stragglers.begin(rollout);
      stragglers.finish();
      while (!stragglers.enough_have_finished()) std::this_thread::yield();
      // Who asks for it now waits for ever.
      meeting.store->deleteKey("rollout/" + std::to_string(rollout) + "/enough");
    }
  });
}

TEST(Stragglers, OldRolloutsAreForgottenAndALongOneIsWaitedForAnew) {
  on_every_rank(2, Machines::one, [](const Meeting& meeting) {
    if (meeting.place.rank == 1) return;  // one of two is enough
    Stragglers stragglers(meeting, 0.5, std::chrono::milliseconds(30));
    for (const std::int64_t rollout : {1, 2, 101}) {
      stragglers.begin(rollout);
      if (rollout == 2) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_FALSE(stragglers.enough_have_finished());
      stragglers.finish();
      while (!stragglers.enough_have_finished()) std::this_thread::yield();
    }
    for (const char* what : {"finished", "enough"}) {
      EXPECT_FALSE(meeting.store->check({std::string("rollout/1/") + what}));
      EXPECT_TRUE(meeting.store->check({std::string("rollout/2/") + what}));
    }
  });
}
