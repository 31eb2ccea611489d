// SPDX-License-Identifier: MIT
// When a rollout is cut short.
#include "trainer/reinforcement/stragglers.h"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "tests/trainer/ranks.h"

using namespace dtool::trainer;

TEST(Stragglers, AreCutShortByTheRanksThatAreNeededAndByNoFewer) {
  on_every_rank(3, Machines::one, [](const Meeting& meeting) {
    Stragglers stragglers(meeting, 0.6, std::chrono::seconds(30));
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
