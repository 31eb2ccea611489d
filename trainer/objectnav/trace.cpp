// SPDX-License-Identifier: MIT
#include "trainer/objectnav/trace.h"

#include <fmt/format.h>

#include "trainer/data/sampler.h"

namespace dtool::trainer {

Trace play_episode(const EnvironmentSettings& settings, Scene& scene, const MovePolicy& choose) {
  Trace trace;
  trace.house = scene.house;
  trace.episodes.push_back(scene.episode);
  while (!trace.end.has_ended) {
    trace.moves.push_back(choose(scene));
    trace.end = take_step(settings, scene.house, scene.field, trace.moves.back(), scene.episode);
    trace.episodes.push_back(scene.episode);
  }
  return trace;
}

bool was_blocked(const Trace& trace, std::size_t step) {
  return trace.episodes[step + 1].previous == kMoveWasBlocked;
}

std::string describe_end(const Trace& trace) {
  const Episode& last = trace.last();
  const char* const how = trace.end.is_success               ? "success"
                          : trace.moves.back() == Move::done ? "failure: done without the goal"
                                                             : "failure: the step limit";
  return fmt::format(
      "{} after {} steps, {:.1f} m walked (shortest {:.1f} m), SPL {:.2f}, reward {:.2f}", how,
      last.steps, last.moves * kCellMetres, last.shortest * kCellMetres,
      success_by_path_length(last, trace.end), last.reward);
}

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
