// SPDX-License-Identifier: MIT
// Pieces without length are left out, because dividing by their length gives no number.
#include "trainer/reinforcement/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/settings/experiment.h"
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
          base.update_repeats * ((nodes.count + divisor - 1) / divisor), base.num_steps,
          base.advance_every};
}

/// `key`: where their number comes from.
void check_mini_batches(const UpdateSettings& update, const Nodes& nodes, const std::string& key) {
  if (update.num_mini_batch <= nodes.smallest_share) return;
  throw UsageError(fmt::format("{} mini-batches cannot be made of a rank's {} samplers ({})",
                               update.num_mini_batch, nodes.smallest_share, key),
                   "raise environment.samplers_per_machine or environment.samplers, or make the "
                   "number of mini-batches smaller");
}

/// The steps of a rollout with which the batches of so many nodes are nodes^`growth` times one
/// node's.
std::int64_t shared_steps(std::int64_t base, std::int64_t nodes, double growth) {
  const double share = std::pow(static_cast<double>(nodes), growth - 1);
  return std::max(std::min(base, kLeastRolloutSteps),
                  std::lround(static_cast<double>(base) * share));
}

std::vector<PipelineStage> plan_stages(const PipelineSettings& settings, const UpdateSettings& base,
                                       const Nodes& nodes, const LossWeights& loss) {
  UpdateSettings small = base;
  UpdateSettings large = base;
  if (settings.rollouts == Rollouts::shared) {
    small.num_steps = shared_steps(base.num_steps, nodes.count, 0);
    large.num_steps = shared_steps(base.num_steps, nodes.count, 0.5);
  } else {
    small = small_batches(base, nodes);
  }
  std::vector<PipelineStage> stages;
  if (settings.small_batch_steps > 0) stages.push_back({settings.small_batch_steps, small, loss});
  stages.push_back({settings.steps, large, loss});
  if (settings.rollout_steps.empty()) return stages;
  if (settings.rollout_steps.size() != stages.size()) {
    throw UsageError(
        fmt::format("pipeline.rollout_steps has {} number{}, but the run has {} stage{}",
                    settings.rollout_steps.size(), settings.rollout_steps.size() == 1 ? "" : "s",
                    stages.size(), stages.size() == 1 ? "" : "s"),
        "give one for each stage; pipeline.small_batch_steps = 0 leaves one stage");
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i].update.num_steps = settings.rollout_steps[i];
  }
  return stages;
}

/// How many times larger a stage's batches are than one node's.
double growth_of(const UpdateSettings& update, const UpdateSettings& base, const Nodes& nodes) {
  return static_cast<double>(nodes.count * update.num_steps) / static_cast<double>(base.num_steps);
}

/// `growth`: that of the last stage.
ScheduleSettings plan_schedule(const PipelineSettings& settings, double growth, double factor) {
  const auto whole = static_cast<double>(settings.steps);
  const double small = std::floor(static_cast<double>(settings.small_batch_steps) * kSafety);
  const double transition = std::floor(settings.transition_steps_per_node * growth);
  const double large = whole - small - transition;
  if (large < 0) {
    throw UsageError(
        fmt::format("pipeline.steps is {}, but the first stage with its 2 % more takes {:.0f} and "
                    "the transition to batches of {:.3g} node{} {:.0f}",
                    settings.steps, small, growth, growth == 1 ? "" : "s", transition),
        "raise pipeline.steps, or make pipeline.small_batch_steps or "
        "pipeline.transition_steps_per_node smaller");
  }
  const double after_small = 1 - small / whole;
  const double at_large = factor * (1 - (small + transition) / whole);
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

std::int64_t Pipeline::longest_rollout() const {
  std::int64_t longest = 0;
  for (const PipelineStage& each : stages) longest = std::max(longest, each.update.num_steps);
  return longest;
}

Pipeline plan_listed(const std::vector<ListedStage>& listed, const Nodes& nodes) {
  Pipeline pipeline;
  pipeline.schedule.kind = ScheduleKind::multi_linear;
  pipeline.schedule.unit = ScheduleUnit::steps;
  std::int64_t end = 0;
  for (const ListedStage& each : listed) {
    check_mini_batches(each.update, nodes,
                       fmt::format("stage[{}].num_mini_batch", pipeline.stages.size()));
    pipeline.stages.push_back({end += each.steps, each.update, each.loss});
    pipeline.schedule.pieces.push_back(
        {static_cast<double>(each.steps), each.first_factor, each.last_factor});
  }
  return pipeline;
}

Pipeline plan_pipeline(const PipelineSettings& settings, const UpdateSettings& base,
                       const Nodes& nodes, const LossWeights& loss) {
  Pipeline pipeline;
  pipeline.stages = plan_stages(settings, base, nodes, loss);
  const double growth = growth_of(pipeline.stages.back().update, base, nodes);
  pipeline.learning_rate_factor = settings.learning_rate_factor.value_or(std::sqrt(growth));
  pipeline.schedule = plan_schedule(settings, growth, pipeline.learning_rate_factor);
  for (const PipelineStage& each : pipeline.stages) {
    check_mini_batches(
        each.update, nodes,
        fmt::format("ppo.num_mini_batch, multiplied in the first stage for {} node{}", nodes.count,
                    nodes.count == 1 ? "" : "s"));
  }
  return pipeline;
}

std::int64_t count_samplers(const DdPpoSettings& settings, std::int64_t ranks_before,
                            std::int64_t ranks) {
  if (settings.samplers_per == SamplersPer::rank) return settings.samplers;
  return settings.samplers / ranks + (ranks_before < settings.samplers % ranks ? 1 : 0);
}

Nodes nodes_of(const DdPpoSettings& settings, const RankCount& ranks) {
  if (settings.samplers_per == SamplersPer::rank) {
    return {ranks.ranks, settings.samplers, settings.samplers};
  }
  const auto on_a_machine = ranks.on_a_machine();
  const auto smallest = count_samplers(settings, on_a_machine - 1, on_a_machine);
  if (smallest == 0) {
    throw UsageError(fmt::format("environment.samplers_per_machine is {}, but a machine has {} "
                                 "ranks, which each need one",
                                 settings.samplers, on_a_machine),
                     "raise it, or start fewer ranks (--nproc_per_node)");
  }
  return {ranks.machines, settings.samplers, smallest};
}

Pipeline plan_pipeline(const DdPpoSettings& settings, const Nodes& nodes) {
  const PpoSettings& ppo = settings.ppo;
  if (!settings.pipeline.listed.empty()) return plan_listed(settings.pipeline.listed, nodes);
  return plan_pipeline(settings.pipeline,
                       {ppo.num_mini_batch, ppo.update_repeats, ppo.num_steps, ppo.advance_every},
                       nodes, ppo);
}

}  // namespace dtool::trainer
