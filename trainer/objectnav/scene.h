// SPDX-License-Identifier: MIT
// A sampler's episodes, one after another: its current house, the field of its goal, and its
// progress.
#pragma once

#include <cstdint>

#include "trainer/objectnav/episode.h"

namespace dtool::trainer {

/// Which houses and episodes these are, and the current episode. Some kilobytes, without further
/// memory.
struct Scene {
  EpisodeSet set = EpisodeSet::training;
  std::uint64_t seed = 0;
  std::int64_t sampler = 0;  ///< its number among all ranks' samplers
  std::int64_t number = -1;  ///< of the episode, from 0; -1: none has begun
  House house;
  GoalField field;
  Episode episode;
};

/// Begins the sampler's episode `number`, which does not depend on earlier ones: every
/// `episodes_per_house` episodes share a house. Allocates nothing.
void begin_episode(const EnvironmentSettings& settings, Scene& scene, std::int64_t number);

}  // namespace dtool::trainer
