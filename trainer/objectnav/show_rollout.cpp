// SPDX-License-Identifier: MIT
#include "trainer/objectnav/show_rollout.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cassert>
#include <chrono>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>

#include "trainer/data/sampler.h"
#include "trainer/objectnav/svg_picture.h"
#include "trainer/objectnav/text_picture.h"
#include "trainer/report/written_file.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

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

}  // namespace

void show_rollout(const RolloutOptions& options, const EnvironmentSettings& settings,
                  std::uint64_t seed, const MovePolicy& policy, const std::string& who) {
  const auto scene = std::make_unique<Scene>();
  scene->set = options.set;
  scene->seed = seed;
  scene->sampler = options.episode;
  begin_episode(settings, *scene, 0);
  Trace trace = play_episode(settings, *scene, policy);
  trace.name =
      fmt::format("Episode {} in {} houses, seed {}; actions by {}", options.episode,
                  options.set == EpisodeSet::training ? "training" : "validation", seed, who);
  if (options.shown == RolloutOptions::Shown::step_by_step) return show_step_by_step(trace);
  const std::string picture = options.format == PictureFormat::svg
                                  ? svg_picture(trace)
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

MovePolicy policy_without_network(PolicyKind kind, std::uint64_t seed) {
  if (kind == PolicyKind::shortest) {
    return [](const Scene& scene) {
      return shortest_path_move(scene.house, scene.field, scene.episode);
    };
  }
  assert(kind == PolicyKind::random);
  return [random = Random(seed)](const Scene&) mutable {
    return static_cast<Move>(random.below(kActions));
  };
}

}  // namespace dtool::trainer
