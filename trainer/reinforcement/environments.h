// SPDX-License-Identifier: MIT
// What a rank's learner knows of its source of experience: many environments, each with one episode
// after another. ObjectNav's are `Samplers` (trainer/objectnav/samplers.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/settings/command_line.h"

namespace dtool::trainer {

/// A part of an observation: bytes, each a code below `codes` that a network looks up in a table.
struct CodedBytes {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t codes = 0;  ///< from 1 to 256

  std::int64_t bytes() const;
  bool operator==(const CodedBytes&) const = default;
};

struct EnvironmentSpec {
  std::vector<CodedBytes> observations;  ///< an observation is their bytes, one part after another
  std::int64_t actions = 0;              ///< an action is one byte below this; from 1 to 256
  /// The names of an episode's scores. By the mean of the first one, a validation decides which
  /// checkpoint is best: higher is better.
  std::vector<std::string> scores;

  std::int64_t observation_bytes() const;
  bool operator==(const EnvironmentSpec&) const = default;
};

/// Sums over ended episodes.
struct EpisodeSums {
  double episodes = 0;
  double steps = 0;
  double reward = 0;
  std::vector<double> scores;  ///< in the order of the spec's; empty: all 0

  EpisodeSums& operator+=(const EpisodeSums& other);
};

/// The arrays of a step, with an entry for each of the environments.
struct StepArrays {
  std::span<const std::uint8_t> actions;
  std::span<float> rewards;
  std::span<std::uint8_t> ended;         ///< 1 if the episode ended, else 0
  std::span<std::uint8_t> observations;  ///< [count][observation_bytes]
};

/// The environments of one rank. All randomness in one depends only on (settings, set, seed, its
/// number among all ranks' environments, its actions), so that two ranks with half of them each see
/// the same as one rank with all. Their first episodes have begun. One thread at a time calls them,
/// except for `step`.
class Environments {
 public:
  virtual ~Environments() = default;

  /// The same for all environments of a run, training and validation.
  virtual const EnvironmentSpec& spec() const = 0;
  virtual int count() const = 0;

  /// Writes each environment's current observation: [count][observation_bytes].
  virtual void observe(std::span<std::uint8_t> observations) const = 0;

  /// Steps the environments [begin, end): reads their entries of `actions`, writes their entries of
  /// the other arrays. A new episode follows an ended one at once, and its first observation is
  /// written. Different threads may step disjoint ranges. Must not throw: on another thread that
  /// would end the process.
  virtual void step(int begin, int end, const StepArrays& arrays) = 0;

  /// The episodes that ended since the last call, summed in the environments' order, whichever
  /// thread stepped them. Has all of the spec's scores.
  virtual EpisodeSums take_sums() = 0;

  /// From now on only the next `each` episodes of every environment count for the sums. An
  /// evaluation steps until `counted_all`, so that it does not favour short episodes.
  virtual void count_only(std::int64_t each) = 0;
  virtual bool counted_all() const = 0;

  /// Everything that `restore` needs to continue bit for bit, in environments with the same
  /// settings, set, seed and numbers: states of equal sizes, one after another. Empty: checkpoints
  /// keep none.
  virtual std::vector<std::uint8_t> state() const { return {}; }
  /// Restores the first environments, as many as `state` has. Throws std::runtime_error if the
  /// state belongs to others; then nothing has changed.
  virtual void restore(const std::vector<std::uint8_t>& /*state*/) {}
};

/// Makes `count` environments with the numbers from `first` on.
using MakeEnvironments = std::function<std::unique_ptr<Environments>(
    EpisodeSet set, std::uint64_t seed, std::int64_t first, int count)>;

/// Threads that step environments, while the calling thread lets the network choose the others'
/// actions. They live as long as this object and sleep between steps. A step allocates nothing.
class SteppingThreads {
 public:
  /// `environments` must outlive this. With `threads` 0, `begin` steps on the caller's thread.
  SteppingThreads(Environments& environments, int threads);
  ~SteppingThreads();

  /// Begins to step the environments [begin, end), divided equally among the threads. The arrays
  /// must stay until `wait`, which must be called before the next `begin`.
  void begin(int begin, int end, const StepArrays& arrays);
  /// Returns when the step is done.
  void wait();

 private:
  struct Shared;
  Environments& environments_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace dtool::trainer
