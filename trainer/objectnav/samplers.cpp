// SPDX-License-Identifier: MIT
#include "trainer/objectnav/samplers.h"

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "trainer/objectnav/episode.h"
#include "trainer/objectnav/trace.h"

namespace dtool::trainer {

namespace {

/// A sampler in a checkpoint. All of one size, so that there is no padding, whose bytes would be
/// anything.
struct Saved {
  std::int64_t number;
  std::int64_t cell;
  std::int64_t heading;
  std::int64_t head;
  std::int64_t previous;
  std::int64_t goal;
  std::int64_t steps;
  std::int64_t moves;
  std::int64_t shortest;
  double reward;
  EpisodeSums sums;
};
static_assert(sizeof(Saved) == 15 * 8);

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

}  // namespace

struct alignas(64) Samplers::Sampler {  // no line of the cache is two threads'

  Scene scene;
  EpisodeSums sums;
  std::int64_t still_counted = kNoLimit;

  void count(const StepOutcome& end) {
    if (still_counted == 0) return;
    if (still_counted != kNoLimit) --still_counted;
    const Episode& episode = scene.episode;
    sums += {1, end.is_success ? 1 : 0, episode.steps, success_by_path_length(episode, end),
             episode.reward};
  }
};

namespace {

Saved saved(const Scene& scene, const EpisodeSums& sums) {
  const Episode& episode = scene.episode;
  return {scene.number, episode.cell,  episode.heading, episode.head,     episode.previous,
          episode.goal, episode.steps, episode.moves,   episode.shortest, episode.reward,
          sums};
}

/// Throws where the saved episode cannot be one of this scene's.
void restore_scene(const EnvironmentSettings& settings, const Saved& from, Scene& scene) {
  begin_episode(settings, scene, from.number);
  Episode& episode = scene.episode;
  const bool is_cell =
      from.cell >= 0 && from.cell < kGridCells && scene.house.is_free(static_cast<Cell>(from.cell));
  if (!is_cell || from.goal != episode.goal || from.shortest != episode.shortest) {
    throw std::runtime_error(
        "the environments' state is of other houses: of another seed or other settings");
  }
  // Their values become rows of tables: a file from elsewhere may have any.
  const auto is_within = [](std::int64_t value, std::int64_t end) {
    return value >= 0 && value < end;
  };
  constexpr std::int64_t kMostSteps = std::numeric_limits<int>::max();
  if (!is_within(from.heading, 4) || !is_within(from.head, kHeads) ||
      !is_within(from.previous, kPreviousActions) || !is_within(from.steps, kMostSteps) ||
      !is_within(from.moves, kMostSteps)) {
    throw std::runtime_error("the environments' state has numbers that no episode has");
  }
  episode.cell = static_cast<Cell>(from.cell);
  episode.heading = turned(static_cast<Heading>(from.heading), 0);
  episode.head = static_cast<std::uint8_t>(from.head);
  episode.previous = static_cast<std::uint8_t>(from.previous);
  episode.steps = static_cast<int>(from.steps);
  episode.moves = static_cast<int>(from.moves);
  episode.reward = from.reward;
}

}  // namespace

EpisodeSums& EpisodeSums::operator+=(const EpisodeSums& other) {
  episodes += other.episodes;
  successes += other.successes;
  steps += other.steps;
  spl += other.spl;
  reward += other.reward;
  return *this;
}

Samplers::Samplers(const EnvironmentSettings& settings, EpisodeSet set, std::uint64_t seed,
                   std::int64_t first_sampler, int count)
    : settings_(settings), samplers_(static_cast<std::size_t>(count)) {
  for (std::size_t i = 0; i < samplers_.size(); ++i) {
    Scene& scene = samplers_[i].scene;
    scene.set = set;
    scene.seed = seed;
    scene.sampler = first_sampler + static_cast<std::int64_t>(i);
    begin_episode(settings_, scene, 0);
  }
}

Samplers::~Samplers() = default;
Samplers::Samplers(Samplers&& other) noexcept = default;

int Samplers::count() const {
  return static_cast<int>(samplers_.size());
}

void Samplers::observe(std::uint8_t* observations) const {
  for (const Sampler& each : samplers_) {
    dtool::trainer::observe(each.scene.house, each.scene.episode, observations);
    observations += kObservationBytes;
  }
}

void Samplers::step(int begin, int end, const std::uint8_t* actions, float* rewards,
                    std::uint8_t* ended, std::uint8_t* observations) {
  assert(0 <= begin && begin <= end && end <= count());
  for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
    assert(actions[i] < kActions);
    Scene& scene = samplers_[i].scene;
    const StepOutcome outcome = take_step(settings_, scene.house, scene.field,
                                          static_cast<Move>(actions[i]), scene.episode);
    rewards[i] = outcome.reward;
    ended[i] = outcome.has_ended ? 1 : 0;
    if (outcome.has_ended) {
      samplers_[i].count(outcome);
      begin_episode(settings_, scene, scene.number + 1);
    }
    dtool::trainer::observe(scene.house, scene.episode, observations + i * kObservationBytes);
  }
}

EpisodeSums Samplers::take_sums() {
  EpisodeSums sums;
  for (Sampler& each : samplers_) {
    sums += each.sums;
    each.sums = {};
  }
  return sums;
}

void Samplers::count_only(std::int64_t each) {
  for (Sampler& sampler : samplers_) sampler.still_counted = each;
}

bool Samplers::counted_all() const {
  return std::all_of(samplers_.begin(), samplers_.end(),
                     [](const Sampler& each) { return each.still_counted == 0; });
}

std::vector<std::uint8_t> Samplers::state() const {
  std::vector<std::uint8_t> state(samplers_.size() * sizeof(Saved));
  for (std::size_t i = 0; i < samplers_.size(); ++i) {
    const Saved one = saved(samplers_[i].scene, samplers_[i].sums);
    std::memcpy(&state[i * sizeof one], &one, sizeof one);
  }
  return state;
}

void Samplers::restore(const std::vector<std::uint8_t>& state) {
  const std::size_t count = state.size() / sizeof(Saved);
  if (state.size() % sizeof(Saved) != 0 || count > samplers_.size()) {
    throw std::runtime_error("the environments' state is of another number of samplers");
  }
  const auto end = samplers_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Sampler> restored(samplers_.begin(), end);
  for (std::size_t i = 0; i < count; ++i) {
    Saved one;
    std::memcpy(&one, &state[i * sizeof one], sizeof one);
    restore_scene(settings_, one, restored[i].scene);
    restored[i].sums = one.sums;
  }
  std::copy(restored.begin(), restored.end(), samplers_.begin());
}

struct SteppingThreads::Shared {
  std::mutex mutex;
  std::condition_variable has_begun;
  std::condition_variable is_done;
  std::int64_t steps = 0;  ///< the steps that have begun
  int busy = 0;            ///< threads that have not finished the last of them
  bool is_closing = false;
  int first = 0;
  int last = 0;
  StepArrays arrays;
  std::vector<std::thread> threads;

  void work(Samplers& samplers, int thread);
};

void SteppingThreads::Shared::work(Samplers& samplers, int thread) {
  std::int64_t done = 0;
  std::unique_lock lock(mutex);
  for (;;) {
    has_begun.wait(lock, [&] { return is_closing || steps > done; });
    if (is_closing) return;
    const auto count = static_cast<int>(threads.size());
    const auto part = [&](int number) { return first + (last - first) * number / count; };
    const int begin = part(thread);
    const int end = part(thread + 1);
    const StepArrays here = arrays;
    lock.unlock();
    samplers.step(begin, end, here.actions, here.rewards, here.ended, here.observations);
    lock.lock();
    ++done;
    if (--busy == 0) is_done.notify_one();
  }
}

SteppingThreads::SteppingThreads(Samplers& samplers, int threads)
    : samplers_(samplers), shared_(std::make_unique<Shared>()) {
  // No thread looks at the number of threads before all are there.
  const std::lock_guard lock(shared_->mutex);
  for (int i = 0; i < threads; ++i) {
    shared_->threads.emplace_back(&Shared::work, shared_.get(), std::ref(samplers), i);
  }
}

SteppingThreads::~SteppingThreads() {
  wait();
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_closing = true;
  }
  shared_->has_begun.notify_all();
  for (std::thread& each : shared_->threads) each.join();
}

void SteppingThreads::begin(int begin, int end, const StepArrays& arrays) {
  if (shared_->threads.empty()) {
    samplers_.step(begin, end, arrays.actions, arrays.rewards, arrays.ended, arrays.observations);
    return;
  }
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->first = begin;
    shared_->last = end;
    shared_->arrays = arrays;
    shared_->busy = static_cast<int>(shared_->threads.size());
    ++shared_->steps;
  }
  shared_->has_begun.notify_all();
}

void SteppingThreads::wait() {
  std::unique_lock lock(shared_->mutex);
  shared_->is_done.wait(lock, [&] { return shared_->busy == 0; });
}

}  // namespace dtool::trainer
