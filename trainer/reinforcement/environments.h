// SPDX-License-Identifier: MIT
// What a rank's learner knows of its source of experience: many environments, each with one episode
// after another. ObjectNav's are `Samplers` (trainer/objectnav/samplers.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/settings/command_line.h"

namespace dtool::trainer {

/// What the numbers of an observation mean, and how they are stored.
enum class ObservedKind {
  codes,   ///< bytes below `Observed::codes`: a network looks each up in a table
  pixels,  ///< bytes from 0 to 255 of a picture, [channels, rows, columns]
  numbers  ///< float32 in the machine's order of bytes
};

/// A part of an observation.
struct Observed {
  std::string name;
  std::vector<std::int64_t> shape;
  ObservedKind kind = ObservedKind::codes;
  std::int64_t codes = 0;  ///< 1 to 256 if the kind is codes

  std::int64_t values() const;
  std::int64_t bytes() const;
  bool operator==(const Observed&) const = default;
};

/// An action is a row of `values()` float32. Either each is a choice, a whole number below its
/// entry of `choices`; or each is a number of a box, of any size: environments clip it to [low,
/// high].
struct ActionSpec {
  std::vector<std::int64_t> choices;  ///< empty: a box
  std::vector<float> low;             ///< a box's; may be infinite
  std::vector<float> high;            ///< a box's

  bool is_box() const { return choices.empty(); }
  std::int64_t values() const;
  /// The numbers with which a policy describes its distribution of actions: a logit for each
  /// choice; or the means, then the logarithms of the standard deviations of a box's values.
  std::int64_t parameters() const;
  bool operator==(const ActionSpec&) const = default;
};

struct EnvironmentSpec {
  std::vector<Observed> observations;  ///< an observation is their bytes, one part after another
  ActionSpec actions;
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
  std::vector<double> scores;  ///< the order is the spec's; empty: all 0

  EpisodeSums& operator+=(const EpisodeSums& other);
};

/// How an episode goes on after a step. One that a limit cut off would have gone on: its last
/// observation has a value.
enum class Ending : std::uint8_t { none, terminated, truncated };

/// The arrays of a step, with an entry for each of the environments.
struct StepArrays {
  std::span<const float> actions;  ///< [count][values of an action]
  std::span<float> rewards;
  std::span<Ending> endings;
  std::span<std::uint8_t> observations;  ///< [count][observation_bytes]
  /// [count][observation_bytes]: the last observation of an episode that was truncated; the other
  /// entries are not written.
  std::span<std::uint8_t> last_observations;
};

/// How restored environments go on.
enum class GoesOn { exactly, with_new_episodes };

/// The environments of one rank. All randomness in one depends only on (settings, set, seed, its
/// number among all ranks' environments, its actions), so that two ranks with half of them each see
/// the same as one rank with all. Their first episodes have begun. One thread calls them.
class Environments {
 public:
  virtual ~Environments() = default;

  /// The same for all environments of a run, training and validation.
  virtual const EnvironmentSpec& spec() const = 0;
  virtual int count() const = 0;
  /// Package, version and the like, by name; empty: they are the trainer's own.
  virtual std::map<std::string, std::string> made_of() const { return {}; }
  /// Whether `begin` returns before the step is done, so that halves that take turns save time.
  virtual bool steps_meanwhile() const = 0;

  /// Writes each environment's current observation: [count][observation_bytes].
  virtual void observe(std::span<std::uint8_t> observations) const = 0;

  /// Begins to step the environments [begin, end): reads their entries of `actions`, writes their
  /// entries of the other arrays. A new episode follows an ended one at once, and its first
  /// observation is written. The arrays must stay until `wait`, which must be called before the
  /// next `begin`.
  virtual void begin(int begin, int end, const StepArrays& arrays) = 0;
  /// Returns when the step is done; at once if none has begun. Throws std::runtime_error if an
  /// environment cannot go on, of which the other ranks know nothing.
  virtual void wait() = 0;

  /// Every environment leaves its episode, which is not counted, and begins one of its next scene.
  /// Throws as `wait`.
  virtual void advance() = 0;

  /// The episodes that ended since the last call, summed in the environments' order, whichever
  /// thread stepped them. Has all of the spec's scores.
  virtual EpisodeSums take_sums() = 0;

  /// From now on only the next `each` episodes of every environment count for the sums. An
  /// evaluation steps until `counted_all`, so that it does not favour short episodes.
  virtual void count_only(std::int64_t each) = 0;
  virtual bool counted_all() const = 0;

  /// Everything that `restore` needs to continue, in environments with the same settings, set, seed
  /// and numbers: states of equal sizes, one after another. Empty: checkpoints keep none.
  virtual std::vector<std::uint8_t> state() const { return {}; }
  /// Restores the first environments, as many as `state` has. Throws std::runtime_error if the
  /// state belongs to others; then nothing has changed.
  virtual GoesOn restore(const std::vector<std::uint8_t>& /*state*/) {
    return GoesOn::with_new_episodes;
  }
};

/// Makes `count` environments with the numbers from `first` on.
using MakeEnvironments = std::function<std::unique_ptr<Environments>(
    EpisodeSet set, std::uint64_t seed, std::int64_t first, int count)>;

/// Environments in this process, which threads step while the calling thread lets the network
/// choose the others' actions. The threads live as long as this object and sleep between steps. A
/// step allocates nothing.
class ThreadedEnvironments : public Environments {
 public:
  /// With `threads` 0, `begin` steps on the caller's thread.
  explicit ThreadedEnvironments(int threads);
  ~ThreadedEnvironments() override;

  bool steps_meanwhile() const override;
  /// The environments are divided equally among the threads.
  void begin(int begin, int end, const StepArrays& arrays) override;
  void wait() override;

 protected:
  /// Steps the environments [begin, end) as `Environments::begin` says. Different threads step
  /// disjoint ranges. Must not throw: on another thread that would end the process.
  virtual void step(int begin, int end, const StepArrays& arrays) = 0;
  /// For the derived class's destructor: ends the threads, which call it.
  void end_threads();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace dtool::trainer
