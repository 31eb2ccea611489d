// SPDX-License-Identifier: MIT
// A rank's ObjectNav environments, for training and validation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/reinforcement/environments.h"

namespace dtool::trainer {

/// What ObjectNav's environments show, take and tell: the cells of house.h or the picture of
/// camera.h, `Move`, and the scores `success` (1 or 0) and `spl`.
const EnvironmentSpec& objectnav_spec(Senses senses = Senses::cells);

/// `count` environments with the global numbers from `first_sampler` on, stepped by `threads`.
/// After the constructor, only `take_sums`, `state` and `restore` allocate memory.
class Samplers : public ThreadedEnvironments {
 public:
  Samplers(const EnvironmentSettings& settings, EpisodeSet set, std::uint64_t seed,
           std::int64_t first_sampler, int count, int threads = 0);
  ~Samplers() override;

  const EnvironmentSpec& spec() const override { return objectnav_spec(settings_.senses); }
  int count() const override;
  void observe(std::span<std::uint8_t> observations) const override;
  void advance() override;
  EpisodeSums take_sums() override;
  void count_only(std::int64_t each) override;
  bool counted_all() const override;
  std::vector<std::uint8_t> state() const override;
  GoesOn restore(const std::vector<std::uint8_t>& state) override;

 private:
  struct Sampler;

  /// The actions are values of Move.
  void step(int begin, int end, const StepArrays& arrays) override;

  EnvironmentSettings settings_;
  std::vector<Sampler> samplers_;
};

}  // namespace dtool::trainer
