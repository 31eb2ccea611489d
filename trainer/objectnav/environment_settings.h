// SPDX-License-Identifier: MIT
// The settings of the ObjectNav environment: the experiment's table [environment].
#pragma once

#include "trainer/settings/rollout_options.h"

namespace dtool::trainer {

/// The side of a grid cell, which is also the distance of move_ahead.
inline constexpr double kCellMetres = 0.5;

/// The limits of the settings below.
inline constexpr int kLeastSide = 9;
inline constexpr int kMostSide = 32;
inline constexpr int kMostRooms = 5;
inline constexpr double kMostFurniture = 0.3;
inline constexpr int kMostSteps = 10'000;
inline constexpr double kMostSuccessDistance = 2.0;

/// Distances are in metres. The rewards' defaults are AllenAct's for ObjectNav (`ObjectNavTask` and
/// `rewards_config` of its RoboTHOR experiments,
/// https://github.com/allenai/allenact/blob/main/allenact_plugins/robothor_plugin).
struct EnvironmentSettings {
  int least_side = 12;  ///< cells along a side of a house, with outer walls; at least kLeastSide
  int most_side = 16;   ///< at most kMostSide
  int least_rooms = 2;
  int most_rooms = 5;                 ///< at most kMostRooms; a small house may have fewer
  int objects = 8;                    ///< per house, of different classes; from 1 to 12
  double low_furniture = 0.06;        ///< share of the floor, from 0 to kMostFurniture
  double tall_furniture = 0.04;       ///< share of the floor, from 0 to kMostFurniture
  int episodes_per_house = 10;        ///< at least 1; then the next house is made
  int step_limit = 200;               ///< steps after which an episode ends without success
  double least_start_distance = 1.0;  ///< length of the shortest path from the start; more than 0
  double success_distance = 1.0;      ///< to the object's centre; from 0.5 to kMostSuccessDistance
  double step_penalty = 0.01;         ///< subtracted from the reward of every step
  double success_reward = 10.0;
  double failed_done_reward = 0.0;
  double shaping_weight = 1.0;  ///< reward for each metre that the goal came nearer
  int threads = 0;  ///< threads that step the environments; 0: the caller's own thread does
};

}  // namespace dtool::trainer
