// Cuts the rollouts of stragglers short: once a set share of the ranks have finished theirs, the
// others learn with what they have (Wijmans et al. 2020, https://arxiv.org/abs/1911.00357, section
// 3).
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer {

/// One rank's end of it. A thread waits for the news, on a connection to the run's store of its
/// own, so that asking costs no message.
class Stragglers {
 public:
  /// `share` of the ranks have to finish, from 0 to 1; with 0, with 1 and where there is one rank,
  /// nobody is ever cut short.
  Stragglers(const Meeting& meeting, double share, std::chrono::milliseconds timeout);
  ~Stragglers();
  Stragglers(const Stragglers&) = delete;
  Stragglers& operator=(const Stragglers&) = delete;

  /// Rollout number `rollout` begins, on all ranks the same. They follow each other, from any
  /// number above 0 on.
  void begin(std::int64_t rollout);

  /// Whether enough ranks have finished the rollout that this rank is in. Never waits.
  bool enough_have_finished() const {
    return finished_.load(std::memory_order_relaxed) >= rollout_.load(std::memory_order_relaxed);
  }

  /// This rank has all steps of its rollout. Throws CollectiveFailed when the store is gone.
  void finish();

 private:
  void listen();
  /// The rollout of which the thread waits to hear.
  std::int64_t awaited() const;

  Meeting meeting_;
  std::int64_t needed_;  ///< ranks; 0: nobody is cut short
  std::chrono::milliseconds timeout_;
  std::atomic<std::int64_t> rollout_ = 0;
  std::atomic<std::int64_t> finished_ = -1;  ///< the last rollout that enough ranks have finished
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

/// How many of `ranks` are `share` of them, rounded up; 0 if that cuts nobody short.
std::int64_t ranks_to_wait_for(double share, std::int64_t ranks);

}  // namespace dtool::trainer
