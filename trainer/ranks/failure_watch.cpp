// The keys in the store: `beat/<rank>` counts a rank's signs of life, `failure` holds the first
// reason that anyone gave, `finished` and `left` count the ranks at the end.
#include "trainer/ranks/failure_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <optional>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "trainer/launch/last_words.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kBeat = seconds(1);
constexpr auto kStorePatience = seconds(10);

std::string beat_key(int rank) {
  return fmt::format("beat/{}", rank);
}

/// Ends the process with `reason` unless it goes out of scope first: a store whose machine has gone
/// silent keeps its caller waiting without end.
class Deadline {
 public:
  Deadline(std::function<void(const std::string&)> stop_process, std::string reason)
      : thread_([this, stop = std::move(stop_process), reason = std::move(reason)] {
          std::unique_lock lock(mutex_);
          if (!done_.wait_for(lock, kStorePatience, [this] { return over_; })) stop(reason);
        }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    done_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool over_ = false;
  std::thread thread_;  // last, so that it starts when the others are there
};

/// Puts `reason` in the store unless one is there; returns the one that is there then.
std::string first_reason(c10d::Store& store, const std::string& reason) {
  // Named, since from LibTorch 2.x on there is a compareSet of strings as well.
  const std::vector<std::uint8_t> absent;
  const std::vector<std::uint8_t> mine(reason.begin(), reason.end());
  const auto winner = store.compareSet("failure", absent, mine);
  return {winner.begin(), winner.end()};
}

std::optional<std::string> known_failure(c10d::Store& store) {
  if (!store.check({"failure"})) return std::nullopt;
  const auto value = store.get("failure");
  return std::string(value.begin(), value.end());
}

std::string no_sign_of_life(const std::vector<Member>& silent) {
  std::vector<std::string> names;
  for (const Member& each : silent) names.push_back(to_string(each));
  return fmt::format("no sign of life from {}", fmt::join(names, ", "));
}

}  // namespace

FailureWatch::FailureWatch(const Meeting& meeting, seconds silence,
                           std::function<void(const std::string&)> stop_process)
    : meeting_(meeting),
      requests_(meeting.place.rank),
      silence_(silence),
      stop_process_(std::move(stop_process)),
      last_beats_(meeting.members.size(), 0),
      last_changes_(meeting.members.size(), Clock::now()),
      pause_(2 * kBeat),
      thread_([this] { watch(); }) {}

FailureWatch::~FailureWatch() {
  stop();
}

void FailureWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stopping_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void FailureWatch::watch() {
  const Place& place = meeting_.place;
  try {
    // A connection of its own: a store's connection serves one caller at a time.
    const auto store = connect_store(place.listener, kStorePatience);
    std::unique_lock lock(mutex_);
    do {
      lock.unlock();
      store->add(beat_key(place.rank), 1);
      const auto reason = known_failure(*store);
      if (reason && !failing_) {
        let_others_read();
        stop_process_(*reason);
      }
      if (place.rank == 0) look_for_silence(*store);
      requests_.exchange(*store);
      lock.lock();
    } while (!stopping_.wait_for(lock, kBeat, [this] { return stopped_; }));
  } catch (const std::exception&) {
    stop_process_(lost_listener());
  }
}

void FailureWatch::let_others_read() const {
  // Machines' processes tell each other; the store is all there is under other launchers.
  const bool is_told_otherwise = std::getenv(kLastWordsVariable) != nullptr;
  if (meeting_.place.rank == 0 && !is_told_otherwise) std::this_thread::sleep_for(2 * kBeat);
}

std::string FailureWatch::lost_listener() const {
  return fmt::format("lost {}, where the run's store was", to_string(meeting_.members[0]));
}

std::vector<std::int64_t> FailureWatch::read_beats(c10d::Store& store) {
  std::vector<std::int64_t> beats;
  for (const Member& each : meeting_.members) beats.push_back(store.add(beat_key(each.rank), 0));
  return beats;
}

/// Rank 0 has the store at hand, so it is the one to notice a rank that stops beating while nobody
/// waits for it in a collective operation, or while NCCL waits without end.
void FailureWatch::look_for_silence(c10d::Store& store) {
  const auto beats = read_beats(store);
  std::vector<Member> silent;
  const auto pause = pause_.take();
  for (std::size_t i = 0; i < beats.size(); ++i) {
    last_changes_[i] += pause;
    if (beats[i] != last_beats_[i]) last_changes_[i] = Clock::now();
    if (Clock::now() - last_changes_[i] > silence_) silent.push_back(meeting_.members[i]);
  }
  last_beats_ = beats;
  if (silent.empty()) return;
  const auto reason = first_reason(store, no_sign_of_life(silent));
  let_others_read();
  stop_process_(reason);
}

void FailureWatch::announce(const std::string& reason) {
  failing_ = true;
  const Deadline deadline(stop_process_, reason);
  try {
    first_reason(*meeting_.store, fmt::format("{} failed: {}", to_string(meeting_.me()), reason));
    let_others_read();
  } catch (const std::exception&) {
    // The store is gone, so the others are ending already; `reason` is told by the caller.
  }
}

std::string FailureWatch::find_cause(const std::string& error) {
  const Deadline deadline(stop_process_, fmt::format("no answer from {}, where the run's store is",
                                                     to_string(meeting_.members[0])));
  c10d::Store& store = *meeting_.store;
  try {
    if (const auto reason = known_failure(store)) return *reason;
    const auto before = read_beats(store);
    std::this_thread::sleep_for(2 * kBeat + milliseconds(500));
    const auto after = read_beats(store);
    std::vector<Member> silent;
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (before[i] == after[i]) silent.push_back(meeting_.members[i]);
    }
    const auto reason =
        first_reason(store, silent.empty() ? fmt::format("{}: {}", to_string(meeting_.me()), error)
                                           : no_sign_of_life(silent));
    let_others_read();
    return reason;
  } catch (const std::exception&) {
    return lost_listener();
  }
}

void FailureWatch::leave() {
  c10d::Store& store = *meeting_.store;
  const auto everyone = static_cast<std::int64_t>(meeting_.members.size());
  store.add("finished", 1);
  while (store.add("finished", 0) < everyone) std::this_thread::sleep_for(milliseconds(5));
  stop();
  // Rank 0 holds the store, so it goes last.
  store.add("left", 1);
  const auto patience = Clock::now() + kStorePatience;
  while (meeting_.place.rank == 0 && store.add("left", 0) < everyone && Clock::now() < patience) {
    std::this_thread::sleep_for(milliseconds(2));
  }
}

}  // namespace dtool::trainer
