// SPDX-License-Identifier: MIT
// One function per table. Lengths that the file omits get the tutorial's share of the run's length,
// so that a short run has the same shape.
#include "trainer/objectnav/objectnav_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/objectnav/observation.h"
#include "trainer/objectnav/show_rollout.h"
#include "trainer/settings/toml_reader.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

constexpr Limits<double> kWeight = {0.0, 1e6};
constexpr Limits<double> kShare = {0.0, 1.0};
constexpr Limits<std::int64_t> kRolloutSteps = {1, 65536};
constexpr std::int64_t kPartOfSharedRollouts = 5;  ///< the first stage is this part of a run

int small_integer(TomlReader& reader, const std::string& key, int standard, int least, int most) {
  return static_cast<int>(reader.integer(key, standard, {least, most}));
}

void check_order(const TomlReader& reader, const std::string& lower, int low,
                 const std::string& upper, int high) {
  if (low <= high) return;
  throw UsageError(fmt::format("{}: {} is {}, above {}, which is {}",
                               reader.where(reader.has(lower) ? lower : upper), lower, low, upper,
                               high));
}

void read_house(TomlReader& reader, EnvironmentSettings& environment) {
  const EnvironmentSettings standard;
  environment.least_side =
      small_integer(reader, "environment.least_side", standard.least_side, kLeastSide, kMostSide);
  environment.most_side =
      small_integer(reader, "environment.most_side", standard.most_side, kLeastSide, kMostSide);
  check_order(reader, "environment.least_side", environment.least_side, "environment.most_side",
              environment.most_side);
  environment.least_rooms =
      small_integer(reader, "environment.least_rooms", standard.least_rooms, 1, kMostRooms);
  environment.most_rooms =
      small_integer(reader, "environment.most_rooms", standard.most_rooms, 1, kMostRooms);
  check_order(reader, "environment.least_rooms", environment.least_rooms, "environment.most_rooms",
              environment.most_rooms);
  environment.objects =
      small_integer(reader, "environment.objects", standard.objects, 1, kObjectClasses);
  environment.low_furniture =
      reader.number("environment.low_furniture", standard.low_furniture, {0.0, kMostFurniture});
  environment.tall_furniture =
      reader.number("environment.tall_furniture", standard.tall_furniture, {0.0, kMostFurniture});
}

void read_episode(TomlReader& reader, EnvironmentSettings& environment) {
  const EnvironmentSettings standard;
  environment.episodes_per_house = small_integer(reader, "environment.episodes_per_house",
                                                 standard.episodes_per_house, 1, 1'000'000);
  environment.step_limit =
      small_integer(reader, "environment.step_limit", standard.step_limit, 1, kMostSteps);
  environment.least_start_distance =
      reader.number("environment.least_start_distance", standard.least_start_distance, {1e-9, 1e3});
  environment.success_distance =
      reader.number("environment.success_distance", standard.success_distance,
                    {kCellMetres, kMostSuccessDistance});
  environment.step_penalty =
      reader.number("environment.step_penalty", standard.step_penalty, kWeight);
  environment.success_reward =
      reader.number("environment.success_reward", standard.success_reward, kWeight);
  environment.failed_done_reward =
      reader.number("environment.failed_done_reward", standard.failed_done_reward, {-1e6, 1e6});
  environment.shaping_weight =
      reader.number("environment.shaping_weight", standard.shaping_weight, kWeight);
}

/// The key with the samplers.
const char* samplers_key(SamplersPer per) {
  return per == SamplersPer::rank ? "environment.samplers" : "environment.samplers_per_machine";
}

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
    throw UsageError(fmt::format("{}: ppo.num_mini_batch is {}, more than {}, {}",
                                 reader.where("ppo.num_mini_batch"), ppo.num_mini_batch,
                                 samplers_key(settings.samplers_per), settings.samplers),
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
void refuse_others(const TomlReader& reader) {
  reader.refuse_if_given("data",
                         "does not go together with workload = \"objectnav\", whose "
                         "experience comes from [environment]");
  refuse_all(reader, {"train", "stage"},
             "does not go together with workload = \"objectnav\": [ppo] says how it learns and "
             "[pipeline] how long");
  reader.refuse_if_given("schedule",
                         "does not go together with workload = \"objectnav\", whose learning rate "
                         "follows [pipeline]");
  refuse_all(reader,
             {"model.layers", "model.sync_batch_norm", "model.loss", "model.output_activation",
              "model.file", "model.input_shape", "model.target"},
             "is not for workload = \"objectnav\", whose network has model.embedding and "
             "model.hidden");
}

std::unique_ptr<WorkloadSettings> read(TomlReader& reader, Experiment& experiment) {
  refuse_others(reader);
  auto settings = std::make_unique<ObjectNavSettings>();
  ObjectNavSettings& objectnav = *settings;
  DdPpoSettings& learning = objectnav.learning;
  read_samplers(reader, learning);
  learning.threads = small_integer(reader, "environment.threads", learning.threads, 0, 1024);
  read_house(reader, objectnav.environment);
  read_episode(reader, objectnav.environment);
  objectnav.embedding = reader.integer("model.embedding", 64, {1, 1 << 16});
  objectnav.hidden = reader.integer("model.hidden", 128, {1, 1 << 16});
  learning.ppo = read_ppo(reader, learning);
  learning.pipeline = read_pipeline(reader);
  learning.validation = read_validation(reader, learning.pipeline.steps);
  try {
    // Settings that do not fit one rank fit nowhere.
    plan_pipeline(learning, nodes_of(learning, {1, 1}));
  } catch (const UsageError& mistake) {
    throw UsageError(fmt::format("{}: {}", reader.where("pipeline"), mistake.what()), mistake.hint);
  }
  experiment.optimizer = read_optimizer(
      reader,
      {.learning_rate = 3e-4,
       .clip_norm = 0.5,
       .why_no_scaling =
           "does not go together with workload = \"objectnav\": [pipeline] has the learning "
           "rate grow with the square root of the batches"});
  return settings;
}

}  // namespace

Rhythm ObjectNavSettings::rhythm() const {
  return {HasEpochs::no, std::max<std::int64_t>(1, learning.pipeline.steps / 60), 100'000};
}

void ObjectNavSettings::check_ranks(const RankCount& ranks) const {
  plan_pipeline(learning, nodes_of(learning, ranks));
}

std::vector<Setting> ObjectNavSettings::settings_on(const RankCount& ranks) const {
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

void ObjectNavSettings::show_episode(const RolloutOptions& options) const {
  const std::uint64_t seed = rollout_seed(options, *this);
  show_rollout(options, environment, seed, policy_without_network(*options.policy, seed),
               *options.policy == PolicyKind::random ? "chance" : "the shortest path");
}

const ObjectNavSettings& objectnav_of(const Experiment& experiment) {
  return dynamic_cast<const ObjectNavSettings&>(*experiment.own);
}

std::uint64_t rollout_seed(const RolloutOptions& options, const ObjectNavSettings& settings) {
  if (options.seed) return *options.seed;
  return options.set == EpisodeSet::validation ? settings.learning.validation.seed : 0;
}

std::int64_t ObjectNavSettings::multiply_adds_per_batch(const RankCount& ranks) const {
  // The view is a sum of rows, one a cell; a GRU has three gates, each from the observation and
  // from the memory; then come the actions' scores and the value.
  const std::int64_t sum_of_rows = kObservationBytes * embedding;
  const std::int64_t gates = 3 * hidden * (embedding + hidden);
  const std::int64_t heads = hidden * (kActions + 1);
  const std::int64_t mine = count_samplers(learning, 0, ranks.on_a_machine());
  const std::int64_t at_once =
      (mine + learning.ppo.num_mini_batch - 1) / learning.ppo.num_mini_batch;
  return (sum_of_rows + gates + heads) * at_once *
         plan_pipeline(learning, nodes_of(learning, ranks)).longest_rollout();
}

namespace objectnav {

extern const WorkloadReader kReader;
const WorkloadReader kReader = {
    read, {"environment", "ppo", "pipeline", "validation", "model.embedding"}};

}  // namespace objectnav

}  // namespace dtool::trainer
