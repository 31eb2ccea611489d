// SPDX-License-Identifier: MIT
// Cuts the rollouts of stragglers short: once a given share of the ranks has finished, the others
// learn from the steps they have (Wijmans et al. 2020, https://arxiv.org/abs/1911.00357, section
// 3).
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer {

/// One rank's part of it. A thread waits for the news on a separate connection to the run's store,
/// so that a query costs no message.
class Stragglers {
 public:
  /// `share` is the share of ranks that have to finish, from 0 to 1. With 0, with 1, or with one
  /// rank, no rollout is cut short.
  Stragglers(const Meeting& meeting, double share, std::chrono::milliseconds timeout);
  ~Stragglers();
  Stragglers(const Stragglers&) = delete;
  Stragglers& operator=(const Stragglers&) = delete;

  /// Rollout number `rollout` begins, the same on all ranks. The numbers follow each other and may
  /// begin anywhere above 0.
  void begin(std::int64_t rollout);

  /// Whether enough ranks have finished the current rollout. Never waits.
  bool enough_have_finished() const {
    return finished_.load(std::memory_order_relaxed) >= rollout_.load(std::memory_order_relaxed);
  }

  /// This rank has all steps of its rollout. Throws CollectiveFailed if the store is gone.
  void finish();

 private:
  void listen();
  /// The rollout that the thread waits for.
  std::int64_t awaited() const;

  Meeting meeting_;
  std::int64_t needed_;  ///< ranks that have to finish; 0: no rollout is cut short
  std::chrono::milliseconds timeout_;
  std::atomic<std::int64_t> rollout_ = 0;
  std::atomic<std::int64_t> finished_ = -1;  ///< the last rollout that enough ranks have finished
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

/// The number of ranks that is `share` of `ranks`, rounded up; 0 if no rollout would be cut short.
std::int64_t ranks_to_wait_for(double share, std::int64_t ranks);

}  // namespace dtool::trainer
