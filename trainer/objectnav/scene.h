// A sampler's episodes, one after the other: the house it is in, the field of its goal, and how far
// it has come.
#pragma once

#include <cstdint>

#include "trainer/objectnav/episode.h"

namespace dtool::trainer {

/// Which houses and episodes these are, then the present one. Some kilobytes, and no memory beside.
struct Scene {
  HouseSet set = HouseSet::training;
  std::uint64_t seed = 0;
  std::int64_t sampler = 0;  ///< its number among all ranks' samplers
  std::int64_t number = -1;  ///< of the episode, from 0; -1: none has begun
  House house;
  GoalField field;
  Episode episode;
};

/// Begins the sampler's episode `number`, the same whatever came before it: every
/// `episodes_per_house` of them are in a house of their own. Allocates nothing.
void begin_episode(const EnvironmentSettings& settings, Scene& scene, std::int64_t number);

}  // namespace dtool::trainer
