// SPDX-License-Identifier: MIT
// The tables that only an experiment with workload = "objectnav" has.
#pragma once

#include <cstdint>

#include "trainer/reinforcement/policy_settings.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/settings/command_line.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

// The settings of the ObjectNav environment: the experiment's table [environment].

/// The side of a grid cell, which is also the distance of move_ahead.
inline constexpr double kCellMetres = 0.5;

/// The limits of the settings below.
inline constexpr int kLeastSide = 9;
inline constexpr int kMostSide = 64;
inline constexpr int kMostRooms = 16;
inline constexpr int kMostOfAClass = 4;
inline constexpr double kMostFurniture = 0.3;
inline constexpr int kMostSteps = 10'000;
inline constexpr double kMostSuccessDistance = 2.0;

/// What an observation shows of the house: the codes of cells, or a picture with depth.
enum class Senses { cells, rgbd };

/// Distances are in metres. The rewards' defaults are AllenAct's for ObjectNav (`ObjectNavTask` and
/// `rewards_config` of its RoboTHOR experiments,
/// https://github.com/allenai/allenact/blob/main/allenact_plugins/robothor_plugin).
struct EnvironmentSettings {
  Senses senses = Senses::cells;
  bool marks_goal = false;  ///< the goal has a colour of its own, as it has a code
  int least_side = 12;  ///< cells along a side of a house, with outer walls; at least kLeastSide
  int most_side = 16;   ///< the most cells along a side of a house; at most kMostSide
  int least_rooms = 2;
  /// The most rooms of a house; at most kMostRooms; a small house may have fewer.
  int most_rooms = 5;
  int objects = 8;               ///< classes of objects in a house; from 1 to 12
  int of_a_class = 1;            ///< objects of each of these classes, to kMostOfAClass
  double low_furniture = 0.06;   ///< share of the floor, from 0 to kMostFurniture
  double tall_furniture = 0.04;  ///< share of the floor, from 0 to kMostFurniture
  /// The episodes in a house, at least 1; then the next house is made.
  int episodes_per_house = 10;
  int step_limit = 200;               ///< steps after which an episode ends without success
  double least_start_distance = 1.0;  ///< length of the shortest path from the start; more than 0
  /// The distance to the object's centre; from 0.5 to kMostSuccessDistance.
  double success_distance = 1.0;
  /// The share of moves that do not happen and of turns that do not or go the other way; to 1.
  double action_noise = 0;
  double step_penalty = 0.01;  ///< subtracted from the reward of every step
  double success_reward = 10.0;
  double failed_done_reward = 0.0;
  double shaping_weight = 1.0;  ///< reward for each metre that the goal came nearer
};

struct ObjectNavSettings : ReinforcementSettings {
  EnvironmentSpec assumed_spec() const override;
  void show_episode(const RolloutOptions& options) const override;

  EnvironmentSettings environment;
};

/// The settings of an experiment with this workload.
const ObjectNavSettings& objectnav_of(const Experiment& experiment);

/// The seed of a rollout's episode.
std::uint64_t rollout_seed(const RolloutOptions& options, const ObjectNavSettings& settings);

}  // namespace dtool::trainer
