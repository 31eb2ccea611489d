// SPDX-License-Identifier: MIT
#include "trainer/objectnav/scene.h"

#include "trainer/data/sampler.h"

namespace dtool::trainer {

void begin_episode(const EnvironmentSettings& settings, Scene& scene, std::int64_t number) {
  const std::int64_t house = number / settings.episodes_per_house;
  const std::uint64_t key = house_number(scene.set, scene.seed, scene.sampler, house);
  if (scene.number < 0 || scene.number / settings.episodes_per_house != house) {
    make_house(settings, key, scene.house);
  }
  scene.number = number;
  // Another stream than the house's own.
  Random random(Random(key ^ 0x65706973).next() ^ static_cast<std::uint64_t>(number));
  scene.episode = begin_episode(settings, scene.house, random, scene.field);
}

}  // namespace dtool::trainer
