// SPDX-License-Identifier: MIT
// The recorded steps of an episode, for pictures.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/objectnav/episode.h"

namespace dtool::trainer {

// A sampler's episodes, one after another: its current house, the field of its goal, and its
// progress.

/// Which houses and episodes these are, and the current episode. Some kilobytes, without further
/// memory.
struct Scene {
  EpisodeSet set = EpisodeSet::training;
  std::uint64_t seed = 0;
  std::int64_t sampler = 0;  ///< its number among all ranks' samplers
  std::int64_t number = -1;  ///< the number of the episode, from 0; -1: none has begun
  House house;
  GoalField field;
  Episode episode;
};

/// Begins the sampler's episode `number`, which does not depend on earlier ones: every
/// `episodes_per_house` episodes share a house. Allocates nothing.
void begin_episode(const EnvironmentSettings& settings, Scene& scene, std::int64_t number);

/// Chooses an action in a scene's current episode.
using MovePolicy = std::function<Move(const Scene&)>;

struct Trace {
  std::string name;  ///< a line of words: which episode and whose policy
  House house;
  std::vector<Episode> episodes;  ///< the state before each action, and the last state
  std::vector<Move> moves;        ///< one fewer
  StepOutcome end;

  const Episode& last() const { return episodes.back(); }
};

/// Plays the scene's episode to its end.
Trace play_episode(const EnvironmentSettings& settings, Scene& scene, const MovePolicy& choose);

/// Whether move `step` was a move_ahead that met an obstacle.
bool was_blocked(const Trace& trace, std::size_t step);

/// A text such as `success after 23 steps, 4.5 m walked (shortest 4.0 m), SPL 0.89, reward 13.77`.
std::string describe_end(const Trace& trace);

}  // namespace dtool::trainer
