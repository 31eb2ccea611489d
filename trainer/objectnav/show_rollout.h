// SPDX-License-Identifier: MIT
// `dtool-trainer rollout`: plays one episode and shows the agent's actions. Called by main, and by
// the worker for a network's policy.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/objectnav/episode.h"
#include "trainer/settings/command_line.h"

namespace dtool::trainer {

/// Plays the episode with this seed and writes its picture, or plays `options.episodes` and prints
/// their mean success, SPL and number of steps. `policy` chooses each action; `who` is
/// its name. Throws UsageError if the file cannot be written.
void show_rollout(const RolloutOptions& options, const EnvironmentSettings& settings,
                  std::uint64_t seed, const MovePolicy& policy, const std::string& who);

/// The same by a policy without a network, that of the options. `shortest` knows the house,
/// `wander` and `doors` use only what the agent sees; the chance in these and in `random` depends
/// on `seed`.
void show_rollout(const RolloutOptions& options, const EnvironmentSettings& settings,
                  std::uint64_t seed);

// An episode as a picture in one self-contained file: the house from above with the agent's path.

/// An SVG file. `above` are elements that lie on the map, whose corner is at (0, 0).
std::string svg_picture(const Trace& trace, const std::string& above = "");

/// A page: the map, and beside it what the camera sees in each step, its colours and to their right
/// the depths. A small script plays it.
std::string html_picture(const Trace& trace);

/// The side of a cell in pixels.
inline constexpr int kCellPixels = 38;

/// The middle of a cell.
struct Pixel {
  double x;
  double y;
};
constexpr Pixel middle_of(Cell cell) {
  return {(x_of(cell) + 0.5) * kCellPixels, (y_of(cell) + 0.5) * kCellPixels};
}

}  // namespace dtool::trainer
