// SPDX-License-Identifier: MIT
// One function per table. Lengths that the file omits get the tutorial's share of the run's length,
// so that a short run has the same shape.
#include "trainer/reinforcement/ppo_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/settings/experiment.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

// The plan of the stages. Pieces without length are left out, because dividing by their length
// gives no number.

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
  if (!settings.pipeline.listed.empty()) return plan_listed(settings.pipeline.listed, nodes);
  return plan_pipeline(settings.pipeline, settings.ppo, nodes, settings.ppo);
}

namespace {

constexpr Limits<double> kWeight = {0.0, 1e6};
constexpr Limits<double> kShare = {0.0, 1.0};
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

void read_loss(TomlReader& reader, const std::string& table, LossWeights& loss) {
  reader.read(table + "clip_param", loss.clip_param, {1e-6, 1e6});
  reader.read(table + "value_loss_coef", loss.value_loss_coef, kWeight);
  reader.read(table + "entropy_coef", loss.entropy_coef, kWeight);
}

void read_update(TomlReader& reader, const std::string& table, UpdateSettings& update) {
  reader.read(table + "num_steps", update.num_steps, {1, 65536});
  reader.read(table + "num_mini_batch", update.num_mini_batch, {1, 65536});
  reader.read(table + "update_repeats", update.update_repeats, {1, 10'000});
  reader.read(table + "advance_every", update.advance_every, {0, 1'000'000'000});
}

PpoSettings read_ppo(TomlReader& reader, const DdPpoSettings& settings) {
  PpoSettings ppo;
  read_update(reader, "ppo.", ppo);
  if (ppo.num_mini_batch > settings.samplers) {
    const bool of_a_rank = settings.samplers_per == SamplersPer::rank;
    throw UsageError(
        fmt::format("{}: ppo.num_mini_batch is {}, more than {}, {}",
                    reader.where("ppo.num_mini_batch"), ppo.num_mini_batch,
                    of_a_rank ? "environment.samplers" : "environment.samplers_per_machine",
                    settings.samplers),
        "a mini-batch has whole samplers: raise these, or make it smaller");
  }
  reader.read("ppo.gamma", ppo.gamma, kShare);
  reader.read("ppo.gae_lambda", ppo.gae_lambda, kShare);
  read_loss(reader, "ppo.", ppo);
  reader.read("ppo.use_clipped_value_loss", ppo.use_clipped_value_loss);
  reader.read("ppo.normalise_returns", ppo.normalise_returns);
  reader.read("ppo.preemption_share", ppo.preemption_share, {1e-6, 1.0});
  reader.read("ppo.least_rollout_share", ppo.least_rollout_share, {1e-6, 1.0});
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
    ListedStage stage{*steps, ppo, ppo};
    read_update(reader, prefix, stage.update);
    read_loss(reader, prefix, stage.loss);
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
    pipeline.rollout_steps = reader.integers("pipeline.rollout_steps", {}, {1, 65536});
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
  reader.read("validation.step_limit", validation.step_limit, {1, kMany});
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
  // Settings that do not fit one rank fit nowhere.
  with_place(reader.where("pipeline"), [&] {
    plan_pipeline(learning, nodes_of(learning, {1, 1}));
  });
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

std::int64_t ReinforcementSettings::multiply_adds_per_batch(const RankCount& ranks) const {
  const std::int64_t mine = count_samplers(learning, 0, ranks.on_a_machine());
  const std::int64_t at_once =
      (mine + learning.ppo.num_mini_batch - 1) / learning.ppo.num_mini_batch;
  return multiply_adds(policy, assumed_spec()) * at_once *
         plan_pipeline(learning, nodes_of(learning, ranks)).longest_rollout();
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
