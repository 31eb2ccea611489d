// SPDX-License-Identifier: MIT
#include "trainer/objectnav/house.h"

#include "trainer/data/sampler.h"

namespace dtool::trainer {
namespace {

void list_free_cells(House& house) {
  house.free_count = 0;
  for (int y = 0; y < house.height; ++y) {
    for (int x = 0; x < house.width; ++x) {
      if (house.is_free(cell_at(x, y))) house.free_list[house.free_count++] = cell_at(x, y);
    }
  }
}

}  // namespace

std::uint64_t house_number(EpisodeSet set, std::uint64_t seed, std::int64_t sampler,
                           std::int64_t house) {
  std::uint64_t number = Random(seed).next();
  number = Random(number ^ static_cast<std::uint64_t>(sampler)).next();
  number = Random(number ^ static_cast<std::uint64_t>(house)).next();
  return number >> 1 | (set == EpisodeSet::validation ? std::uint64_t{1} << 63 : 0);
}

void make_house(const EnvironmentSettings& settings, std::uint64_t number, House& house) {
  Random random(number);
  do {  // once, unless furniture left no object within reach
    build_rooms(settings, random, house);
    furnish(settings, random, house);
  } while (house.object_count == 0);
  list_free_cells(house);
}

}  // namespace dtool::trainer
