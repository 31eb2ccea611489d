// SPDX-License-Identifier: MIT
// Several ranks as threads of one process, each with its own connections, for tests of what goes on
// between ranks.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/comm/links.h"
#include "trainer/launch/network.h"
#include "trainer/ranks/process_group.h"
#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer {

enum class Machines {
  one,
  one_a_rank,  ///< so that no two ranks share memory
};

/// Runs `body` on each of `ranks` ranks that have met; none ends before all are done. An exception
/// fails the test.
inline void on_every_rank(int ranks, Machines machines,
                          const std::function<void(const Meeting&)>& body) {
  // LibTorch 2.11 notes every operation in a table of the process, into which ranks in threads
  // would write at once.
  ::setenv("TORCH_FR_BUFFER_SIZE", "0", 0);
  const ReservedPort port;
  std::vector<std::thread> threads;
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Place place{rank, ranks, rank, ranks, 0, {"127.0.0.1", port.number()}};
        if (machines == Machines::one_a_rank) {
          place.machine = rank;
          place.local_rank = 0;
          place.local_world_size = 1;
        }
        const Meeting meeting = meet(place, std::chrono::seconds(60));
        body(meeting);
        if (ranks == 1) return;
        meeting.store->add("test/done", 1);
        while (meeting.store->add("test/done", 0) < ranks) std::this_thread::yield();
        meeting.store->add("test/left", 1);
        while (rank == 0 && meeting.store->add("test/left", 0) < ranks) std::this_thread::yield();
      } catch (const std::exception& problem) {
        errors[static_cast<std::size_t>(rank)] = problem.what();
      }
    });
  }
  for (auto& each : threads) each.join();
  for (const auto& error : errors) EXPECT_EQ(error, "");
}

inline constexpr int kRanks = 3;

/// Three ranks of one machine, connected.
inline void on_every_rank(const std::function<void(const Group&)>& body,
                          Way all_reduce = Way::library) {
  on_every_rank(kRanks, Machines::one, [&](const Meeting& meeting) {
    constexpr std::chrono::seconds timeout(60);
    Group group = make_group(meeting, Backend::gloo, timeout);
    if (all_reduce != Way::library) {
      group.gradient_sum = std::make_shared<GradientSum>(meeting, all_reduce, timeout);
    }
    body(group);
    sum_over_ranks(group, {1});  // nobody leaves before the others are done
  });
}

}  // namespace dtool::trainer
