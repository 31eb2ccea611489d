// SPDX-License-Identifier: MIT
// Many ObjectNav environments, each with one episode after another: a rank's source of experience,
// for training and validation.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/objectnav/environment_settings.h"
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

}  // namespace dtool::trainer
