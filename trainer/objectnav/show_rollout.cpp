// SPDX-License-Identifier: MIT
#include "trainer/objectnav/show_rollout.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "trainer/data/sampler.h"
#include "trainer/objectnav/view.h"
#include "trainer/report/written_file.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

// A cell is two characters wide, which makes it about square.

constexpr std::array<std::string_view, 4> kArrows = {"^ ", "> ", "v ", "< "};

std::string symbol(int seen) {
  if (seen == kGoalObject) return "**";
  if (seen >= kObject) return {static_cast<char>('A' + seen - kObject), ' '};
  if (seen == kHidden) return "  ";
  if (seen == kWall) return "##";
  if (seen == kDoor) return "+ ";
  if (seen == kLowFurniture) return "oo";
  if (seen == kTallFurniture) return "TT";
  return ". ";
}

/// The map's rows, with `S` at the start and `,` where the agent has been.
std::vector<std::string> map_rows(const Trace& trace, std::size_t step) {
  const House& house = trace.house;
  const Episode& now = trace.episodes[step];
  std::vector<std::string> rows;
  for (int y = 0; y < house.height; ++y) {
    std::string row;
    for (int x = 0; x < house.width; ++x) {
      const Cell cell = cell_at(x, y);
      const auto end = trace.episodes.begin() + static_cast<std::ptrdiff_t>(step);
      const bool was_here = std::any_of(trace.episodes.begin(), end,
                                        [&](const Episode& each) { return each.cell == cell; });
      const int seen = house.seen(cell);
      if (cell == now.cell) {
        row += kArrows[static_cast<std::size_t>(now.heading)];
      } else if (cell == trace.episodes[0].cell) {
        row += "S ";
      } else if (was_here) {
        row += ", ";
      } else {
        row += symbol(seen == kObject + now.goal ? kGoalObject : seen);
      }
    }
    rows.push_back(row);
  }
  return rows;
}

/// The agent's view, the farthest row first, with the agent below the middle of the last row.
std::vector<std::string> view_rows(const Trace& trace, std::size_t step) {
  const Episode& now = trace.episodes[step];
  std::array<std::uint8_t, kObservationBytes> observation;
  observe(trace.house, now, observation.data());
  constexpr int kHalf = view_half_width(kViewDepth);
  std::vector<std::string> rows(kViewDepth + 1, std::string(2 * (2 * kHalf + 1), ' '));
  for (std::size_t i = 0; i < kViewCells; ++i) {
    const auto [forward, right] = kViewPlaces[i];
    rows[static_cast<std::size_t>(kViewDepth - forward)].replace(
        static_cast<std::size_t>(2 * (kHalf + right)), 2, symbol(observation[i]));
  }
  rows.back().replace(2 * kHalf, 2, "^ ");
  constexpr std::array<std::string_view, kHeads> kLooks = {"to its left", "straight on",
                                                           "to its right"};
  rows.insert(rows.begin(), fmt::format("seen, looking {}:", kLooks[now.head]));
  return rows;
}

std::string legend(const Trace& trace) {
  std::string text = "## wall, + door, oo low furniture, TT tall furniture, ** goal";
  for (const Object& object : trace.house.objects()) {
    if (object.kind == trace.last().goal) continue;
    text += fmt::format(", {} {}", static_cast<char>('A' + object.kind), kObjectNames[object.kind]);
  }
  return text + ", S start, ',' path\n";
}

/// The state before move `step`; if `step` is the number of moves, the last state.
std::string text_picture(const Trace& trace, std::size_t step) {
  const auto map = map_rows(trace, step);
  const auto view = view_rows(trace, step);
  std::string text = fmt::format("{}\n\n", trace.name);
  for (std::size_t i = 0; i < std::max(map.size(), view.size()); ++i) {
    const std::string left = i < map.size() ? map[i] : "";
    std::string line =
        i < view.size() ? fmt::format("{:<{}}   {}", left, map[0].size(), view[i]) : left;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text + "\n" + legend(trace) + describe_step(trace, step) + "\n";
}

constexpr std::chrono::milliseconds kStepShown{150};

/// In a terminal each step replaces the last one; elsewhere the steps follow each other without
/// pauses.
void show_step_by_step(const Trace& trace) {
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  for (std::size_t step = 0; step < trace.moves.size(); ++step) {
    fmt::print("{}{}\n", is_terminal ? "\x1b[H\x1b[J" : "", text_picture(trace, step));
    std::fflush(stdout);
    if (is_terminal) std::this_thread::sleep_for(kStepShown);
  }
  fmt::print("{}{}", is_terminal ? "\x1b[H\x1b[J" : "", text_picture(trace, trace.moves.size()));
}

/// Plays the episodes of the samplers from `options.episode` on, without keeping what they did.
void count_successes(const RolloutOptions& options, const EnvironmentSettings& settings,
                     Scene& scene, const MovePolicy& policy, const std::string& who) {
  std::int64_t successes = 0;
  std::int64_t steps = 0;
  double spl = 0;
  for (std::int64_t i = 0; i < *options.episodes; ++i) {
    scene.sampler = options.episode + i;
    scene.number = -1;
    begin_episode(settings, scene, 0);
    StepOutcome end;
    while (!end.has_ended) {
      end = take_step(settings, policy(scene), scene);
    }
    successes += end.is_success ? 1 : 0;
    steps += scene.episode.steps;
    spl += success_by_path_length(scene.episode, end);
  }
  const auto mean = [&](auto sum) {
    return static_cast<double>(sum) / static_cast<double>(*options.episodes);
  };
  fmt::print("{} episode{} in {} houses, seed {}; actions by {}\n", *options.episodes,
             *options.episodes == 1 ? "" : "s",
             options.set == EpisodeSet::training ? "training" : "validation", scene.seed, who);
  fmt::print("success {:.3f}, SPL {:.3f}, {:.1f} steps an episode\n", mean(successes), mean(spl),
             mean(steps));
}

}  // namespace

void show_rollout(const RolloutOptions& options, const EnvironmentSettings& settings,
                  std::uint64_t seed, const MovePolicy& policy, const std::string& who) {
  const auto scene = std::make_unique<Scene>();
  scene->set = options.set;
  scene->seed = seed;
  scene->sampler = options.episode;
  if (options.episodes) return count_successes(options, settings, *scene, policy, who);
  begin_episode(settings, *scene, 0);
  Trace trace = play_episode(settings, *scene, policy);
  trace.name =
      fmt::format("Episode {} in {} houses, seed {}; actions by {}", options.episode,
                  options.set == EpisodeSet::training ? "training" : "validation", seed, who);
  if (options.shown == RolloutOptions::Shown::step_by_step) return show_step_by_step(trace);
  const std::string picture = options.format == PictureFormat::svg ? svg_picture(trace)
                              : options.format == PictureFormat::html
                                  ? html_picture(trace)
                                  : text_picture(trace, trace.moves.size());
  if (!options.output) {
    fmt::print("{}", picture);
    return;
  }
  try {
    write_whole(*options.output, picture);
  } catch (const std::system_error& problem) {
    throw UsageError(fmt::format("--output: cannot write {}: {}", options.output->string(),
                                 problem.code().message()));
  }
  fmt::print("{}: {}\n", options.output->string(), describe_end(trace));
}

void show_rollout(const RolloutOptions& options, const EnvironmentSettings& settings,
                  std::uint64_t seed) {
  const PolicyKind kind = *options.policy;
  if (kind == PolicyKind::shortest) {
    const auto along_path = [](const Scene& scene) {
      return shortest_path_move(scene.house, scene.field, scene.episode);
    };
    return show_rollout(options, settings, seed, along_path, "the shortest path");
  }
  Random random(seed);
  if (kind == PolicyKind::random) {
    const auto by_chance = [&](const Scene&) { return static_cast<Move>(random.below(kActions)); };
    return show_rollout(options, settings, seed, by_chance, "chance");
  }
  assert(kind == PolicyKind::wander || kind == PolicyKind::doors);
  const bool to_doors = kind == PolicyKind::doors;
  const auto by_script = [&](const Scene& scene) {
    std::array<std::uint8_t, kObservationBytes> observation;
    observe(scene.house, scene.episode, observation.data());
    return scripted_move(settings, to_doors ? ScriptGoals::goal_and_doors : ScriptGoals::goal,
                         observation.data(), random);
  };
  show_rollout(options, settings, seed, by_script,
               to_doors ? "the script doors" : "the script wander");
}

}  // namespace dtool::trainer
