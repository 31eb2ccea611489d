// SPDX-License-Identifier: MIT
#include "trainer/objectnav/objectnav_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/objectnav/samplers.h"
#include "trainer/objectnav/show_rollout.h"
#include "trainer/settings/toml_reader.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

constexpr Limits<double> kWeight = {0.0, 1e6};

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
  environment.of_a_class =
      small_integer(reader, "environment.of_a_class", standard.of_a_class, 1, kMostOfAClass);
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
  environment.action_noise =
      reader.number("environment.action_noise", standard.action_noise, {0.0, 1.0});
  environment.step_penalty =
      reader.number("environment.step_penalty", standard.step_penalty, kWeight);
  environment.success_reward =
      reader.number("environment.success_reward", standard.success_reward, kWeight);
  environment.failed_done_reward =
      reader.number("environment.failed_done_reward", standard.failed_done_reward, {-1e6, 1e6});
  environment.shaping_weight =
      reader.number("environment.shaping_weight", standard.shaping_weight, kWeight);
}

/// A picture must fit the layers that it goes through.
void check_encoder(const TomlReader& reader, const PolicySettings& policy) {
  try {
    layers_of_picture(policy, objectnav_spec(Senses::rgbd).observations[0]);
  } catch (const UsageError& mistake) {
    const char* const key =
        reader.has("model.encoder_layers") ? "model.encoder_layers" : "model.encoder";
    throw UsageError(fmt::format("{}: {}", reader.where(key), mistake.what()), mistake.hint);
  }
}

/// Pictures go through `model.encoder` as well.
PolicySettings read_network(TomlReader& reader, Senses senses) {
  PolicySettings policy;
  policy.encoder = "nature_half";
  policy.memory = PolicyMemory::gru;
  if (senses == Senses::rgbd) {
    policy = read_policy(reader, policy);
    check_encoder(reader, policy);
    return policy;
  }
  refuse_all(reader, {"model.encoder", "model.encoder_layers"},
             "is for environment.observation = \"rgbd\"");
  policy.embedding = reader.integer("model.embedding", policy.embedding, {1, 1 << 16});
  policy.memory = choose<PolicyMemory>(
      reader, "model.memory",
      {{"gru", PolicyMemory::gru}, {"lstm", PolicyMemory::lstm}, {"none", PolicyMemory::none}});
  policy.hidden = reader.integer("model.hidden", policy.hidden, {1, 1 << 16});
  return policy;
}

std::unique_ptr<WorkloadSettings> read(TomlReader& reader, Experiment& experiment) {
  auto settings = std::make_unique<ObjectNavSettings>();
  ObjectNavSettings& objectnav = *settings;
  objectnav.learning = read_dd_ppo(reader, "objectnav", experiment.optimizer);
  refuse_all(
      reader,
      {"model.layers", "model.activation", "model.normalise_observations", "model.sync_batch_norm",
       "model.loss", "model.output_activation", "model.file", "model.input_shape", "model.target"},
      "is not for workload = \"objectnav\", whose network has model.embedding and "
      "model.hidden");
  objectnav.environment.senses = choose<Senses>(reader, "environment.observation",
                                                {{"cells", Senses::cells}, {"rgbd", Senses::rgbd}});
  if (objectnav.environment.senses == Senses::rgbd) {
    objectnav.environment.marks_goal = reader.boolean("environment.marks_goal", false);
  } else {
    reader.refuse_if_given("environment.marks_goal", "is for environment.observation = \"rgbd\"");
  }
  read_house(reader, objectnav.environment);
  read_episode(reader, objectnav.environment);
  objectnav.policy = read_network(reader, objectnav.environment.senses);
  objectnav.policy.precision = objectnav.learning.ppo.precision;
  return settings;
}

}  // namespace

void ObjectNavSettings::show_episode(const RolloutOptions& options) const {
  const std::uint64_t seed = rollout_seed(options, *this);
  show_rollout(options, environment, seed,
               policy_without_network(*options.policy, environment, seed),
               name_without_network(*options.policy));
}

const ObjectNavSettings& objectnav_of(const Experiment& experiment) {
  return dynamic_cast<const ObjectNavSettings&>(*experiment.own);
}

std::uint64_t rollout_seed(const RolloutOptions& options, const ObjectNavSettings& settings) {
  if (options.seed) return *options.seed;
  return options.set == EpisodeSet::validation ? settings.learning.validation.seed : 0;
}

std::int64_t ObjectNavSettings::multiply_adds_per_batch(const RankCount& ranks) const {
  const std::int64_t mine = count_samplers(learning, 0, ranks.on_a_machine());
  const std::int64_t at_once =
      (mine + learning.ppo.num_mini_batch - 1) / learning.ppo.num_mini_batch;
  return multiply_adds(policy, objectnav_spec(environment.senses)) * at_once *
         plan_pipeline(learning, nodes_of(learning, ranks)).longest_rollout();
}

namespace objectnav {

extern const WorkloadReader kReader;
const WorkloadReader kReader = {
    read, {"environment", "ppo", "pipeline", "validation", "model.embedding"}};

}  // namespace objectnav

}  // namespace dtool::trainer
