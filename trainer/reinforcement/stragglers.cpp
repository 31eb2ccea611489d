// SPDX-License-Identifier: MIT
// The keys in the store: `rollout/<number>/finished` counts the ranks that have finished it, and
// `rollout/<number>/enough` appears once they are enough.
#include "trainer/reinforcement/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "trainer/ranks/process_group.h"

namespace dtool::trainer {
namespace {

const std::vector<std::uint8_t> kThere = {1};

/// Every rank's training, and its thread, is past a rollout that is this old.
constexpr std::int64_t kForgotten = 100;

std::string key_of(std::int64_t rollout, const char* what) {
  return fmt::format("rollout/{}/{}", rollout, what);
}

}  // namespace

std::int64_t ranks_to_wait_for(double share, std::int64_t ranks) {
  // 0.55 of 20 is a little more than 11 in binary.
  const double exactly = share * static_cast<double>(ranks);
  const auto needed = static_cast<std::int64_t>(std::ceil(exactly - 1e-9));
  return needed < ranks ? needed : 0;
}

Stragglers::Stragglers(const Meeting& meeting, double share, std::chrono::milliseconds timeout)
    : meeting_(meeting),
      needed_(ranks_to_wait_for(share, meeting.place.world_size)),
      timeout_(timeout) {}

Stragglers::~Stragglers() {
  if (!thread_.joinable()) return;
  stopped_ = true;
  try {
    // Wakes the thread. Ranks that ended earlier have let it go on to numbers of no rollout.
    meeting_.store->set(key_of(awaited(), "enough"), kThere);
  } catch (const std::exception&) {
    // The store is gone, which wakes the thread as well.
  }
  thread_.join();
}

void Stragglers::begin(std::int64_t rollout) {
  rollout_ = rollout;
  if (needed_ > 0 && !thread_.joinable()) thread_ = std::thread([this] { listen(); });
}

void Stragglers::finish() {
  if (needed_ == 0) return;
  collectively([&] {
    const auto finished = meeting_.store->add(key_of(rollout_, "finished"), 1);
    if (finished != needed_) return;
    meeting_.store->set(key_of(rollout_, "enough"), kThere);
    meeting_.store->deleteKey(key_of(rollout_ - kForgotten, "finished"));
    meeting_.store->deleteKey(key_of(rollout_ - kForgotten, "enough"));
  });
}

/// While `stopped_` is set, the thread does not go on to another.
std::int64_t Stragglers::awaited() const {
  return std::max(finished_ + 1, rollout_.load());
}

void Stragglers::listen() {
  while (!stopped_) {
    try {
      const auto store = connect_store(meeting_.place.listener, timeout_);
      while (!stopped_) {
        const auto next = awaited();
        store->wait({key_of(next, "enough")}, timeout_);
        finished_.store(next);
      }
    } catch (const std::exception&) {
      // A rollout longer than the timeout, after which the connection is of no more use; or the
      // store is gone, which this rank's training notices by itself.
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

}  // namespace dtool::trainer
