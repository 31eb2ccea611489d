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

void check_order(const TomlReader& reader, const std::string& lower, int low,
                 const std::string& upper, int high) {
  if (low <= high) return;
  throw UsageError(fmt::format("{}: {} is {}, above {}, which is {}",
                               reader.where(reader.has(lower) ? lower : upper), lower, low, upper,
                               high));
}

void read_house(TomlReader& reader, EnvironmentSettings& environment) {
  reader.read("environment.least_side", environment.least_side, {kLeastSide, kMostSide});
  reader.read("environment.most_side", environment.most_side, {kLeastSide, kMostSide});
  check_order(reader, "environment.least_side", environment.least_side, "environment.most_side",
              environment.most_side);
  reader.read("environment.least_rooms", environment.least_rooms, {1, kMostRooms});
  reader.read("environment.most_rooms", environment.most_rooms, {1, kMostRooms});
  check_order(reader, "environment.least_rooms", environment.least_rooms, "environment.most_rooms",
              environment.most_rooms);
  reader.read("environment.objects", environment.objects, {1, kObjectClasses});
  reader.read("environment.of_a_class", environment.of_a_class, {1, kMostOfAClass});
  reader.read("environment.low_furniture", environment.low_furniture, {0.0, kMostFurniture});
  reader.read("environment.tall_furniture", environment.tall_furniture, {0.0, kMostFurniture});
}

void read_episode(TomlReader& reader, EnvironmentSettings& environment) {
  reader.read("environment.episodes_per_house", environment.episodes_per_house, {1, 1'000'000});
  reader.read("environment.step_limit", environment.step_limit, {1, kMostSteps});
  reader.read("environment.least_start_distance", environment.least_start_distance, {1e-9, 1e3});
  reader.read("environment.success_distance", environment.success_distance,
              {kCellMetres, kMostSuccessDistance});
  reader.read("environment.action_noise", environment.action_noise, {0.0, 1.0});
  reader.read("environment.step_penalty", environment.step_penalty, kWeight);
  reader.read("environment.success_reward", environment.success_reward, kWeight);
  reader.read("environment.failed_done_reward", environment.failed_done_reward, {-1e6, 1e6});
  reader.read("environment.shaping_weight", environment.shaping_weight, kWeight);
}

/// A picture must fit the layers that it goes through.
void check_encoder(const TomlReader& reader, const PolicySettings& policy) {
  const char* const key =
      reader.has("model.encoder_layers") ? "model.encoder_layers" : "model.encoder";
  with_place(reader.where(key),
             [&] { layers_of_picture(policy, objectnav_spec(Senses::rgbd).observations[0]); });
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
  reader.read("model.embedding", policy.embedding, {1, 1 << 16});
  policy.memory = choose<PolicyMemory>(
      reader, "model.memory",
      {{"gru", PolicyMemory::gru}, {"lstm", PolicyMemory::lstm}, {"none", PolicyMemory::none}});
  reader.read("model.hidden", policy.hidden, {1, 1 << 16});
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
    reader.read("environment.marks_goal", objectnav.environment.marks_goal);
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
  show_rollout(options, environment, rollout_seed(options, *this));
}

const ObjectNavSettings& objectnav_of(const Experiment& experiment) {
  return dynamic_cast<const ObjectNavSettings&>(*experiment.own);
}

std::uint64_t rollout_seed(const RolloutOptions& options, const ObjectNavSettings& settings) {
  if (options.seed) return *options.seed;
  return options.set == EpisodeSet::validation ? settings.learning.validation.seed : 0;
}

EnvironmentSpec ObjectNavSettings::assumed_spec() const {
  return objectnav_spec(environment.senses);
}

namespace objectnav {

extern const WorkloadReader kReader;
const WorkloadReader kReader = {
    read, {"environment", "ppo", "pipeline", "validation", "model.embedding"}};

}  // namespace objectnav

}  // namespace dtool::trainer
