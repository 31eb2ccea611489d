// Several ranks as threads of one process, each with its own connection.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/process_group.h"
#include "trainer/rendezvous.h"

namespace dtool::trainer {

inline constexpr int kRanks = 3;

/// Runs `body` on every rank of a group.
inline void on_every_rank(const std::function<void(const Group&)>& body) {
  const ReservedPort port(ReservedPort::For::this_machine);
  std::vector<std::thread> threads;
  std::vector<std::string> errors(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const Place place{rank, kRanks, rank, kRanks, 0, {"127.0.0.1", port.number()}};
        const Meeting meeting = meet(place, std::chrono::seconds(60));
        const Group group = make_group(meeting, Backend::gloo, std::chrono::seconds(60));
        body(group);
        sum_over_ranks(group, {1});  // nobody leaves before the others are done
      } catch (const std::exception& problem) {
        errors[static_cast<std::size_t>(rank)] = problem.what();
      }
    });
  }
  for (auto& each : threads) each.join();
  for (const auto& error : errors) EXPECT_EQ(error, "");
}

}  // namespace dtool::trainer
