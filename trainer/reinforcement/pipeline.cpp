// SPDX-License-Identifier: MIT
// Pieces without length are left out, because dividing by their length gives no number.
#include "trainer/reinforcement/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

/// The tutorial waits so much longer, since a stage ends with the rollout that fills it.
constexpr double kSafety = 1.02;

UpdateSettings small_batches(const UpdateSettings& base, const Nodes& nodes) {
  std::int64_t divisor = std::min(nodes.samplers / 2, nodes.count);
  if (nodes.smallest_share < nodes.samplers) {
    // Among so many neighbouring samplers there is one of every mini-batch, wherever they begin.
    divisor = std::min(divisor, (nodes.smallest_share + 1) / 2 / base.num_mini_batch);
  }
  divisor = std::max<std::int64_t>(1, divisor);
  while (nodes.samplers % divisor != 0) --divisor;
  return {base.num_mini_batch * divisor,
          base.update_repeats * ((nodes.count + divisor - 1) / divisor)};
}

void check_mini_batches(const UpdateSettings& update, const Nodes& nodes) {
  if (update.num_mini_batch <= nodes.smallest_share) return;
  throw UsageError(
      fmt::format("{} mini-batches cannot be made of a rank's {} samplers (ppo.num_mini_batch, "
                  "multiplied in the first stage for {} node{})",
                  update.num_mini_batch, nodes.smallest_share, nodes.count,
                  nodes.count == 1 ? "" : "s"),
      "raise environment.samplers_per_machine or environment.samplers, or make ppo.num_mini_batch "
      "smaller");
}

ScheduleSettings plan_schedule(const PipelineSettings& settings, std::int64_t nodes) {
  const auto whole = static_cast<double>(settings.steps);
  const double small = std::floor(static_cast<double>(settings.small_batch_steps) * kSafety);
  const double transition =
      std::floor(settings.transition_steps_per_node * static_cast<double>(nodes));
  const double large = whole - small - transition;
  if (large < 0) {
    throw UsageError(
        fmt::format("pipeline.steps is {}, but the first stage with its 2 % more takes {:.0f} and "
                    "the transition on {} node{} {:.0f}",
                    settings.steps, small, nodes, nodes == 1 ? "" : "s", transition),
        "raise pipeline.steps, or make pipeline.small_batch_steps or "
        "pipeline.transition_steps_per_node smaller");
  }
  const double after_small = 1 - small / whole;
  const double at_large =
      std::sqrt(static_cast<double>(nodes)) * (1 - (small + transition) / whole);
  ScheduleSettings schedule;
  schedule.kind = ScheduleKind::multi_linear;
  schedule.unit = ScheduleUnit::steps;
  schedule.pieces = {
      {small, 1, after_small}, {transition, after_small, at_large}, {large, at_large, 0}};
  std::erase_if(schedule.pieces, [](const LinearPiece& each) { return each.length == 0; });
  return schedule;
}

}  // namespace

std::size_t Pipeline::stage_at(std::int64_t steps) const {
  std::size_t stage = 0;
  while (stage + 1 < stages.size() && steps >= stages[stage].end) ++stage;
  return stage;
}

Pipeline plan_pipeline(const PipelineSettings& settings, const UpdateSettings& base,
                       const Nodes& nodes) {
  Pipeline pipeline;
  pipeline.schedule = plan_schedule(settings, nodes.count);
  if (settings.small_batch_steps > 0) {
    pipeline.stages.push_back({settings.small_batch_steps, small_batches(base, nodes)});
  }
  pipeline.stages.push_back({settings.steps, base});
  for (const PipelineStage& each : pipeline.stages) check_mini_batches(each.update, nodes);
  return pipeline;
}

}  // namespace dtool::trainer
