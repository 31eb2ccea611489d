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
constexpr Limits<std::int64_t> kAdvanceEvery = {0, 1'000'000'000};
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

LossWeights read_loss(TomlReader& reader, const std::string& table, const LossWeights& standard) {
  LossWeights loss;
  loss.clip_param = reader.number(table + "clip_param", standard.clip_param, {1e-6, 1e6});
  loss.value_loss_coef =
      reader.number(table + "value_loss_coef", standard.value_loss_coef, kWeight);
  loss.entropy_coef = reader.number(table + "entropy_coef", standard.entropy_coef, kWeight);
  return loss;
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
  ppo.advance_every = reader.integer("ppo.advance_every", 0, kAdvanceEvery);
  ppo.gamma = reader.number("ppo.gamma", ppo.gamma, kShare);
  ppo.gae_lambda = reader.number("ppo.gae_lambda", ppo.gae_lambda, kShare);
  static_cast<LossWeights&>(ppo) = read_loss(reader, "ppo.", ppo);
  const bool clips = ppo.use_clipped_value_loss == ClippedValueLoss::yes;
  ppo.use_clipped_value_loss = reader.boolean("ppo.use_clipped_value_loss", clips)
                                   ? ClippedValueLoss::yes
                                   : ClippedValueLoss::no;
  ppo.normalise_returns =
      reader.boolean("ppo.normalise_returns", false) ? NormaliseReturns::yes : NormaliseReturns::no;
  ppo.preemption_share = reader.number("ppo.preemption_share", ppo.preemption_share, {1e-6, 1.0});
  ppo.least_rollout_share =
      reader.number("ppo.least_rollout_share", ppo.least_rollout_share, {1e-6, 1.0});
  ppo.precision = read_precision(reader, "ppo.precision");
  ppo.cuda_graph = read_cuda_graph(reader, "ppo.cuda_graph");
  return ppo;
}

/// The stages of the list [[stage]] without their learning rates; what one does not say is as in
/// [ppo].
PipelineSettings read_listed(TomlReader& reader, const PpoSettings& ppo, std::size_t count) {
  reader.refuse_if_given("pipeline", "does not go together with [[stage]], which lists the stages");
  PipelineSettings pipeline;
  pipeline.steps = 0;
  pipeline.small_batch_steps = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto prefix = fmt::format("stage[{}].", i);
    const auto steps = reader.integer_if_given(prefix + "steps", {1, kMany / 1'000'000});
    if (!steps) {
      throw UsageError(fmt::format("{}: stage[{}] needs a length: steps",
                                   reader.where(fmt::format("stage[{}]", i)), i));
    }
    ListedStage stage;
    stage.steps = *steps;
    stage.update.num_steps = reader.integer(prefix + "num_steps", ppo.num_steps, kRolloutSteps);
    stage.update.num_mini_batch =
        reader.integer(prefix + "num_mini_batch", ppo.num_mini_batch, {1, 65536});
    stage.update.update_repeats =
        reader.integer(prefix + "update_repeats", ppo.update_repeats, {1, 10'000});
    stage.update.advance_every =
        reader.integer(prefix + "advance_every", ppo.advance_every, kAdvanceEvery);
    stage.loss = read_loss(reader, prefix, ppo);
    pipeline.listed.push_back(stage);
    pipeline.steps += stage.steps;
  }
  return pipeline;
}

/// A stage begins where the one before ended, and keeps its learning rate.
void read_learning_rates(TomlReader& reader, double learning_rate,
                         std::vector<ListedStage>& listed) {
  constexpr Limits<double> kRate = {0.0, 1e6};
  double last = learning_rate;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const auto prefix = fmt::format("stage[{}].", i);
    const double first = reader.number(prefix + "learning_rate", last, kRate);
    last = reader.number(prefix + "last_learning_rate", first, kRate);
    listed[i].first_factor = first / learning_rate;
    listed[i].last_factor = last / learning_rate;
  }
}

PipelineSettings read_pipeline(TomlReader& reader, const PpoSettings& ppo) {
  if (const auto count = reader.count_tables("stage"); count > 0) {
    return read_listed(reader, ppo, count);
  }
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

ValidationSettings read_validation(TomlReader& reader, std::int64_t steps,
                                   const ValidationStandards& standards) {
  ValidationSettings validation;
  validation.every_steps =
      reader.integer("validation.every_steps", std::max<std::int64_t>(1, steps / 20), {0, kMany});
  validation.episodes = reader.integer("validation.episodes", standards.episodes, {1, 10'000'000});
  validation.environments =
      reader.integer("validation.environments", standards.environments, {0, 1'000'000});
  validation.step_limit =
      reader.integer("validation.step_limit", validation.step_limit, {1, kMany});
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
  reader.refuse_if_given("train", other + ": [ppo] says how it learns and [pipeline] how long");
  reader.refuse_if_given("schedule",
                         other + ", whose learning rate follows [pipeline] or [[stage]]");
}

}  // namespace

DdPpoSettings read_dd_ppo(TomlReader& reader, const std::string& workload,
                          OptimizerSettings& optimizer, const ValidationStandards& standards) {
  refuse_others(reader, workload);
  DdPpoSettings learning;
  read_samplers(reader, learning);
  learning.threads = static_cast<int>(reader.integer("environment.threads", 0, {0, 1024}));
  learning.ppo = read_ppo(reader, learning);
  learning.pipeline = read_pipeline(reader, learning.ppo);
  learning.validation = read_validation(reader, learning.pipeline.steps, standards);
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
  read_learning_rates(reader, optimizer.learning_rate, learning.pipeline.listed);
  return learning;
}

std::int64_t ValidationSettings::environments_in_all() const {
  return environments == 0 ? episodes : std::min(environments, episodes);
}

std::int64_t ValidationSettings::episodes_of_each() const {
  const std::int64_t all = environments_in_all();
  return (episodes + all - 1) / all;
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
