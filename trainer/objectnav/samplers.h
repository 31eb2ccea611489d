// SPDX-License-Identifier: MIT
// Many ObjectNav environments, each with one episode after another: a rank's source of experience,
// for training and validation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/objectnav/observation.h"

namespace dtool::trainer {

/// Sums over finished episodes.
struct EpisodeSums {
  std::int64_t episodes = 0;
  std::int64_t successes = 0;
  std::int64_t steps = 0;
  double spl = 0;
  double reward = 0;

  EpisodeSums& operator+=(const EpisodeSums& other);
};

/// `count` environments with the global numbers from `first_sampler` on. All randomness in an
/// environment depends only on (settings, set, seed, its global number, its actions), so that two
/// ranks with half of the samplers each see the same as one rank with all. After the constructor,
/// only `state` and `restore` allocate memory.
class Samplers {
 public:
  Samplers(const EnvironmentSettings& settings, EpisodeSet set, std::uint64_t seed,
           std::int64_t first_sampler, int count);
  ~Samplers();
  Samplers(Samplers&& other) noexcept;

  int count() const;

  /// Writes each sampler's current observation: [count][kObservationBytes].
  void observe(std::uint8_t* observations) const;

  /// Steps the samplers [begin, end). Reads their entries of `actions` (values of Move) and writes
  /// their entries of `rewards` and `ended` (1 if the episode ended, else 0), each [count], and of
  /// `observations` [count][kObservationBytes]. A new episode follows an ended one at once, and its
  /// first observation is written. Different threads may step disjoint ranges.
  void step(int begin, int end, const std::uint8_t* actions, float* rewards, std::uint8_t* ended,
            std::uint8_t* observations);

  /// The episodes that finished since the last call, summed in the samplers' order, whichever
  /// thread stepped them.
  EpisodeSums take_sums();

  /// From now on only the next `each` episodes of every sampler count for the sums. An evaluation
  /// steps until `counted_all`, so that it does not favour short episodes.
  void count_only(std::int64_t each);
  bool counted_all() const;

  /// Everything that `restore` needs to continue bit for bit, in samplers with the same settings,
  /// set, seed and numbers. The states of the samplers have equal sizes and follow each other.
  std::vector<std::uint8_t> state() const;
  /// Restores the first samplers, as many as `state` has. Throws std::runtime_error if the state
  /// belongs to other samplers; then nothing has changed.
  void restore(const std::vector<std::uint8_t>& state);

 private:
  struct Sampler;

  EnvironmentSettings settings_;
  std::vector<Sampler> samplers_;
};

// Steps samplers on other threads. Meanwhile the calling thread lets the network choose the other
// samplers' actions.

/// The arrays of `Samplers::step`.
struct StepArrays {
  const std::uint8_t* actions = nullptr;
  float* rewards = nullptr;
  std::uint8_t* ended = nullptr;
  std::uint8_t* observations = nullptr;
};

/// Threads that live as long as this object and sleep between steps. A step allocates nothing.
class SteppingThreads {
 public:
  /// `samplers` must outlive this. With `threads` 0, `begin` steps on the caller's thread.
  SteppingThreads(Samplers& samplers, int threads);
  ~SteppingThreads();

  /// Begins to step the samplers [begin, end), divided equally among the threads. The arrays must
  /// stay until `wait`, which must be called before the next `begin`.
  void begin(int begin, int end, const StepArrays& arrays);
  /// Returns when the step is done.
  void wait();

 private:
  struct Shared;
  Samplers& samplers_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace dtool::trainer
