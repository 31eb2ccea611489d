// SPDX-License-Identifier: MIT
// One ObjectNav episode: the agent's position, the effect of actions, the reward, and the result.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/objectnav/camera.h"
#include "trainer/objectnav/house.h"
#include "trainer/objectnav/view.h"

namespace dtool::trainer {

class Random;

/// The state of an episode in a house.
struct Episode {
  Cell cell = 0;
  Heading heading = 0;  ///< the heading of the body
  std::uint8_t head = kHeadStraight;
  std::uint8_t previous = kEpisodeBegins;  ///< the previous action as observations show it
  int goal = 0;                            ///< class of object
  int steps = 0;
  int moves = 0;     ///< move_ahead steps that were not blocked: the path's length in cells
  int shortest = 0;  ///< cells from the start to where success is possible
  double reward = 0;
};

/// The result of a step.
struct StepOutcome {
  float reward = 0;
  bool has_ended = false;
  bool is_success = false;
};

/// Draws a goal among the house's objects, and a start whose shortest path is at least
/// `least_start_distance` long (the farthest cell if there is no such start). Fills `field` for the
/// goal.
Episode begin_episode(const EnvironmentSettings& settings, const House& house, Random& random,
                      GoalField& field);

/// What becomes of an action: noise can leave it without effect, or make a turn the opposite one.
enum class Effect { as_chosen, none, opposite };

/// Takes one step. The episode ends with `done`, or at the step limit. `done` succeeds if an object
/// of the goal's class is in the current view within the success distance. The reward is that of
/// AllenAct's ObjectNavTask.judge: -step_penalty + shaping_weight * (metres by which the shortest
/// path to success became shorter) + at `done`, success_reward or failed_done_reward.
StepOutcome take_step(const EnvironmentSettings& settings, const House& house,
                      const GoalField& field, Move move, Episode& episode,
                      Effect effect = Effect::as_chosen);

/// Writes the `kObservationBytes` bytes of an observation of cells.
void observe(const House& house, const Episode& episode, std::uint8_t* observation);

/// The bytes of an observation: of cells `kObservationBytes`; with a picture, the picture's, then
/// the goal, the previous action and the head.
constexpr std::int64_t observation_bytes(Senses senses) {
  return senses == Senses::cells ? kObservationBytes : kPictureBytes + 3;
}

/// Writes the `observation_bytes` bytes of the observation.
void observe(const EnvironmentSettings& settings, const House& house, const Episode& episode,
             std::uint8_t* observation);

/// The direction the agent looks in.
Heading view_heading(const Episode& episode);

/// Success weighted by path length of an ended episode (Anderson et al. 2018,
/// https://arxiv.org/abs/1807.06757, section 3): 0 without success, else the length of the shortest
/// path divided by the greater of that length and the length of the path taken (1 if both are 0).
double success_by_path_length(const Episode& episode, const StepOutcome& end);

/// The action of a policy that knows the house: it walks down the distance field, turns until
/// success is possible, then calls `done`.
Move shortest_path_move(const House& house, const GoalField& field, const Episode& episode);

/// What `scripted_move` walks to besides the goal.
enum class ScriptGoals { goal, goal_and_doors };

/// The action of a script that has no memory and learns nothing. It uses only `observation`
/// (`kObservationBytes` bytes) and chance. It calls `done` at a goal within reach. It walks to a
/// goal that it sees, else to the nearest door that it sees if `walks_to` has doors, else straight
/// on, with a turn to either side in one step of five. Where it is blocked, it turns to a side that
/// chance chooses, or with doors to the side where it sees more floor.
Move scripted_move(const EnvironmentSettings& settings, ScriptGoals walks_to,
                   const std::uint8_t* observation, Random& random);

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

/// Takes one step of the scene's episode with the settings' noise, which depends only on the scene
/// and the number of the step. The agent is not told of it.
StepOutcome take_step(const EnvironmentSettings& settings, Move move, Scene& scene);

/// Chooses an action in a scene's current episode.
using MovePolicy = std::function<Move(const Scene&)>;

/// The recorded steps of an episode, for pictures.
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

/// The agent's move `step`, or behind the last one how the episode ended.
std::string describe_step(const Trace& trace, std::size_t step);

}  // namespace dtool::trainer
