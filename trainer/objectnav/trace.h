// SPDX-License-Identifier: MIT
// The recorded steps of an episode, for pictures.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/objectnav/scene.h"

namespace dtool::trainer {

/// Chooses an action in a scene's current episode.
using MovePolicy = std::function<Move(const Scene&)>;

struct Trace {
  std::string name;  ///< which episode and whose policy: a line of words
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
