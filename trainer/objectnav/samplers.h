// Many ObjectNav environments, one episode after the other in each: a rank's source of experience,
// and of validation.
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

/// `count` environments with the global numbers from `first_sampler` on. Everything random in one
/// depends only on (settings, set, seed, its global number, the actions taken in it), so that two
/// ranks with half of the samplers each see what one rank with all of them sees. After the
/// constructor, nothing allocates but `state` and `restore`.
class Samplers {
 public:
  Samplers(const EnvironmentSettings& settings, HouseSet set, std::uint64_t seed,
           std::int64_t first_sampler, int count);
  ~Samplers();
  Samplers(Samplers&& other) noexcept;

  int count() const;

  /// Writes what each sees now: [count][kObservationBytes].
  void observe(std::uint8_t* observations) const;

  /// Steps the samplers [begin, end): reads their entries of `actions` (values of Move) and writes
  /// theirs of `rewards` and `ended` (1 if the episode ended, else 0), each [count], and of
  /// `observations` [count][kObservationBytes]. An ended episode is followed by a new one at once,
  /// whose first observation is written. Different threads may step disjoint ranges.
  void step(int begin, int end, const std::uint8_t* actions, float* rewards, std::uint8_t* ended,
            std::uint8_t* observations);

  /// The episodes that finished since the last call; added up in the samplers' order, whichever
  /// thread stepped them.
  EpisodeSums take_sums();

  /// From now on only the next `each` episodes of every sampler are added to the sums. So an
  /// evaluation does not prefer short episodes: it steps until `counted_all`.
  void count_only(std::int64_t each);
  bool counted_all() const;

  /// All that `restore` needs to go on bit for bit, in samplers of the same settings, set, seed and
  /// numbers; as many bytes for each, one after the other.
  std::vector<std::uint8_t> state() const;
  /// Puts back as many of these samplers, from the first on, as `state` has. Throws
  /// std::runtime_error if the state is of other samplers; then nothing has changed.
  void restore(const std::vector<std::uint8_t>& state);

 private:
  struct Sampler;

  EnvironmentSettings settings_;
  std::vector<Sampler> samplers_;
};

}  // namespace dtool::trainer
