// SPDX-License-Identifier: MIT
// The keys in the store: `asked/<signal>` counts signals to ranks, `fulfilled` the checkpoints that
// rank 0 has written for SIGTERM, `left` the ranks that have left; `failed` is a sentence, which a
// rank's connection leaves as its will.
#include "trainer/ranks/request_exchange.h"

#include <fmt/format.h>
#include <signal.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "trainer/launch/requests.h"
#include "trainer/ranks/process_group.h"
#include "trainer/ranks/run_store.h"

namespace dtool::trainer {
namespace {

constexpr std::array<int, 2> kSignals = {SIGUSR1, SIGTERM};
constexpr const char* kFulfilled = "fulfilled";
constexpr const char* kFailureKey = "failed";
constexpr auto kBetweenLooks = std::chrono::seconds(1);
constexpr auto kBetweenUrgentLooks = std::chrono::milliseconds(50);

/// A killed rank's connections end together, and the others learn of them one after another.
constexpr auto kForFirstFailure = std::chrono::seconds(2);

/// A launcher signals all ranks at once; what they tell of it comes when rank 0 has long taken it.
constexpr auto kSameRequest = std::chrono::seconds(4);

/// A rank that is killed says nothing, and the others may be waiting for it. A launcher's store has
/// no wills.
void set_will(c10d::Store& store, const std::string& if_closed, std::chrono::seconds limit,
              const std::string& if_silent) {
  if (auto* const own = dynamic_cast<RunStore*>(&store))
    own->set_will(kFailureKey, if_closed, limit, if_silent);
}

std::string asked(int signal) {
  return fmt::format("asked/{}", signal);
}

}  // namespace

RequestExchange::RequestExchange(const Meeting& meeting, std::chrono::seconds heartbeat_timeout,
                                 std::function<void(const std::string&)> stop_process)
    : meeting_(meeting),
      heartbeat_timeout_(heartbeat_timeout),
      stop_process_(std::move(stop_process)),
      thread_([this] { work(); }) {}

RequestExchange::~RequestExchange() {
  stop();
}

void RequestExchange::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void RequestExchange::work() {
  try {
    // A store's connection serves one caller at a time.
    // The store answers from a thread of rank 0 that does nothing else, and so does this thread
    // ask: no limit for collective operations, which may have to wait for long computations,
    // applies to them.
    const auto store = connect_store(meeting_.place.listener, heartbeat_timeout_);
    const std::string me = to_string(meeting_.me());
    set_will(*store, me + " closed its connection", heartbeat_timeout_,
             fmt::format("{} gave no sign of life for {} s", me, heartbeat_timeout_.count()));
    std::unique_lock lock(mutex_);
    do {
      lock.unlock();
      exchange(*store);
      lock.lock();
    } while (!pause(lock));
    set_will(*store, "", heartbeat_timeout_, "");
  } catch (const std::exception&) {
    {
      const std::lock_guard lock(mutex_);
      if (is_stopped_) return;  // rank 0 ended sooner than this rank, for the same reason
    }
    stop_process_(
        fmt::format("lost {}, where the run's store was", to_string(meeting_.members[0])));
  }
}

/// True: it is over.
bool RequestExchange::pause(std::unique_lock<std::mutex>& lock) {
  if (is_asked_) {
    changed_.wait_for(lock, kBetweenUrgentLooks, [this] { return is_stopped_; });
  } else {
    changed_.wait_for(lock, kBetweenLooks, [this] { return is_stopped_ || is_asked_; });
  }
  return is_stopped_;
}

std::optional<std::string> RequestExchange::find_first_failure() {
  std::unique_lock lock(mutex_);
  is_asked_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, kForFirstFailure, [this] { return first_failure_.has_value(); });
  return first_failure_;
}

void RequestExchange::leave() {
  wait_for_all_ranks(meeting_, "finished");
  stop();
  // Rank 0 holds the store, so it goes last.
  c10d::Store& store = *meeting_.store;
  store.add("left", 1);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (meeting_.place.rank == 0 && store.add("left", 0) < meeting_.place.world_size &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void RequestExchange::announce(const std::string& reason) noexcept {
  has_failed_ = true;
  try {
    put(*meeting_.store, kFailureKey, fmt::format("{}: {}", to_string(meeting_.me()), reason));
  } catch (const std::exception&) {  // the store is gone, and the others know
  }
}

void RequestExchange::exchange(c10d::Store& store) {
  if (!has_failed_ && store.check({kFailureKey})) {
    const std::string failure = text_at(store, kFailureKey);
    // Ends the process only without the lock, for which those wait that it waits for.
    bool is_asked = false;
    {
      const std::lock_guard lock(mutex_);
      first_failure_ = failure;
      is_asked = is_asked_;
    }
    changed_.notify_all();
    if (!has_failed_ && !is_asked) stop_process_(failure);
  }
  if (meeting_.place.rank == 0) {
    hear(store);
  } else {
    tell(store);
  }
}

void RequestExchange::tell(c10d::Store& store) {
  if (const int signal = take_request()) {
    fulfilled_ = store.add(kFulfilled, 0);
    store.add(asked(signal), 1);
    has_asked_to_end_ = has_asked_to_end_ || signal == SIGTERM;
  }
  if (has_asked_to_end_ && store.add(kFulfilled, 0) > fulfilled_) end_if_terminated();
}

void RequestExchange::hear(c10d::Store& store) {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    const auto count = store.add(asked(kSignals[i]), 0);
    const bool is_new = count > heard_[i];
    heard_[i] = count;
    if (!is_new) continue;
    if (std::chrono::steady_clock::now() - last_taken(kSignals[i]) >= kSameRequest) {
      pass_request(kSignals[i]);
    } else if (kSignals[i] == SIGTERM && last_end_is_kept()) {
      store.add(kFulfilled, 1);
    }
  }
  const auto fulfilled = ends_kept();
  if (fulfilled > fulfilled_) store.add(kFulfilled, fulfilled - fulfilled_);
  fulfilled_ = fulfilled;
}

}  // namespace dtool::trainer
