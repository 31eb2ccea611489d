// SPDX-License-Identifier: MIT
// One function per table. Lengths that the file omits get the tutorial's share of the run's length,
// so that a short run has the same shape.
#include "trainer/reinforcement/ppo_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

constexpr Limits<double> kWeight = {0.0, 1e6};
constexpr Limits<double> kShare = {0.0, 1.0};
constexpr Limits<std::int64_t> kRolloutSteps = {1, 65536};
constexpr std::int64_t kPartOfSharedRollouts = 5;  ///< the first stage is this part of a run

void read_samplers(TomlReader& reader, DdPpoSettings& settings) {
  constexpr Limits<std::int64_t> kSamplers = {1, 1'000'000};
  if (const auto of_a_rank = reader.integer_if_given("environment.samplers", kSamplers)) {
    reader.refuse_if_given("environment.samplers_per_machine",
                           "does not go together with environment.samplers, which is each rank's");
    settings.samplers_per = SamplersPer::rank;
    settings.samplers = *of_a_rank;
    return;
  }
  settings.samplers_per = SamplersPer::machine;
  settings.samplers = reader.integer("environment.samplers_per_machine", 60, kSamplers);
}

PpoSettings read_ppo(TomlReader& reader, const DdPpoSettings& settings) {
  PpoSettings ppo;
  ppo.num_steps = reader.integer("ppo.num_steps", ppo.num_steps, kRolloutSteps);
  ppo.num_mini_batch = reader.integer("ppo.num_mini_batch", ppo.num_mini_batch, {1, 65536});
  if (ppo.num_mini_batch > settings.samplers) {
    const bool of_a_rank = settings.samplers_per == SamplersPer::rank;
    throw UsageError(
        fmt::format("{}: ppo.num_mini_batch is {}, more than {}, {}",
                    reader.where("ppo.num_mini_batch"), ppo.num_mini_batch,
                    of_a_rank ? "environment.samplers" : "environment.samplers_per_machine",
                    settings.samplers),
        "a mini-batch has whole samplers: raise these, or make it smaller");
  }
  ppo.update_repeats = reader.integer("ppo.update_repeats", ppo.update_repeats, {1, 10'000});
  ppo.gamma = reader.number("ppo.gamma", ppo.gamma, kShare);
  ppo.gae_lambda = reader.number("ppo.gae_lambda", ppo.gae_lambda, kShare);
  ppo.clip_param = reader.number("ppo.clip_param", ppo.clip_param, {1e-6, 1e6});
  ppo.value_loss_coef = reader.number("ppo.value_loss_coef", ppo.value_loss_coef, kWeight);
  ppo.entropy_coef = reader.number("ppo.entropy_coef", ppo.entropy_coef, kWeight);
  const bool clips = ppo.use_clipped_value_loss == ClippedValueLoss::yes;
  ppo.use_clipped_value_loss = reader.boolean("ppo.use_clipped_value_loss", clips)
                                   ? ClippedValueLoss::yes
                                   : ClippedValueLoss::no;
  ppo.preemption_share = reader.number("ppo.preemption_share", ppo.preemption_share, {1e-6, 1.0});
  ppo.least_rollout_share =
      reader.number("ppo.least_rollout_share", ppo.least_rollout_share, {1e-6, 1.0});
  ppo.cuda_graph = read_cuda_graph(reader, "ppo.cuda_graph");
  return ppo;
}

PipelineSettings read_pipeline(TomlReader& reader) {
  const PipelineSettings tutorial;
  PipelineSettings pipeline;
  pipeline.steps = reader.integer("pipeline.steps", tutorial.steps, {1, kMany / 1000});
  const double share = static_cast<double>(pipeline.steps) / static_cast<double>(tutorial.steps);
  pipeline.rollouts = reader.word("pipeline.rollouts", {"shared", "whole"}, "shared") == "shared"
                          ? Rollouts::shared
                          : Rollouts::whole;
  // Sharing makes the first stage the quick one, and it lasts until an agent finds most objects.
  const std::int64_t part = pipeline.rollouts == Rollouts::shared
                                ? kPartOfSharedRollouts
                                : tutorial.steps / tutorial.small_batch_steps;
  pipeline.small_batch_steps =
      reader.integer("pipeline.small_batch_steps", pipeline.steps / part, {0, pipeline.steps});
  pipeline.transition_steps_per_node =
      reader.number("pipeline.transition_steps_per_node",
                    tutorial.transition_steps_per_node * share, {0.0, 1e15});
  if (reader.has("pipeline.rollout_steps")) {
    pipeline.rollout_steps = reader.integers("pipeline.rollout_steps", {}, kRolloutSteps);
  }
  pipeline.learning_rate_factor =
      reader.number_if_given("pipeline.learning_rate_factor", {1e-6, 1e6});
  return pipeline;
}

ValidationSettings read_validation(TomlReader& reader, std::int64_t steps) {
  ValidationSettings validation;
  validation.every_steps =
      reader.integer("validation.every_steps", std::max<std::int64_t>(1, steps / 20), {0, kMany});
  validation.episodes = reader.integer("validation.episodes", 1000, {1, 10'000'000});
  validation.seed = static_cast<std::uint64_t>(reader.integer("validation.seed", 0, {0, kMany}));
  if (reader.has("validation.follow")) {
    validation.follow = reader.text("validation.follow", "");
    validation.patience =
        std::chrono::seconds(reader.integer("validation.patience_seconds", 7200, {1, 10'000'000}));
  } else {
    reader.refuse_if_given("validation.patience_seconds", "goes with validation.follow only");
  }
  return validation;
}

/// Refuses the tables of learning from samples.
void refuse_others(const TomlReader& reader, const std::string& workload) {
  const std::string other = "does not go together with workload = \"" + workload + "\"";
  reader.refuse_if_given("data", other + ", whose experience comes from [environment]");
  refuse_all(reader, {"train", "stage"},
             other + ": [ppo] says how it learns and [pipeline] how long");
  reader.refuse_if_given("schedule", other + ", whose learning rate follows [pipeline]");
}

}  // namespace

DdPpoSettings read_dd_ppo(TomlReader& reader, const std::string& workload,
                          OptimizerSettings& optimizer) {
  refuse_others(reader, workload);
  DdPpoSettings learning;
  read_samplers(reader, learning);
  learning.threads = static_cast<int>(reader.integer("environment.threads", 0, {0, 1024}));
  learning.ppo = read_ppo(reader, learning);
  learning.pipeline = read_pipeline(reader);
  learning.validation = read_validation(reader, learning.pipeline.steps);
  try {
    // Settings that do not fit one rank fit nowhere.
    plan_pipeline(learning, nodes_of(learning, {1, 1}));
  } catch (const UsageError& mistake) {
    throw UsageError(fmt::format("{}: {}", reader.where("pipeline"), mistake.what()), mistake.hint);
  }
  const std::string why_no_scaling = fmt::format(
      "does not go together with workload = \"{}\": [pipeline] has the learning rate "
      "grow with the square root of the batches",
      workload);
  optimizer = read_optimizer(
      reader, {.learning_rate = 3e-4, .clip_norm = 0.5, .why_no_scaling = why_no_scaling});
  return learning;
}

Rhythm ReinforcementSettings::rhythm() const {
  return {HasEpochs::no, std::max<std::int64_t>(1, learning.pipeline.steps / 60), 100'000};
}

void ReinforcementSettings::check_ranks(const RankCount& ranks) const {
  plan_pipeline(learning, nodes_of(learning, ranks));
}

std::vector<Setting> ReinforcementSettings::settings_on(const RankCount& ranks) const {
  const Nodes nodes = nodes_of(learning, ranks);
  const Pipeline planned = plan_pipeline(learning, nodes);
  const std::int64_t all = nodes.count * nodes.samplers;
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < planned.stages.size(); ++i) {
    const PipelineStage& stage = planned.stages[i];
    settings.push_back(
        {fmt::format("stage {} of {}", i + 1, planned.stages.size()),
         fmt::format("to step {}: rollouts of {} steps, {} of {} samplers a mini-batch, {} repeats",
                     stage.end, stage.update.num_steps, all / stage.update.num_mini_batch, all,
                     stage.update.update_repeats),
         Origin::given});
  }
  if (planned.learning_rate_factor != 1) {
    settings.push_back({"learning rate of the last stage",
                        fmt::format("grows by {:.3g}", planned.learning_rate_factor),
                        Origin::given});
  }
  return settings;
}

}  // namespace dtool::trainer
