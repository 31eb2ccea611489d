// SPDX-License-Identifier: MIT
#include "trainer/environments/environment_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trainer/settings/toml_reader.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using nlohmann::json;

/// What fits into a worker's socket before it reads.
constexpr std::size_t kLongestRequest = std::size_t{1} << 16;

[[noreturn]] void refuse(const TomlReader& reader, const std::string& key, const std::string& why,
                         const std::string& hint) {
  throw UsageError(fmt::format("{}: {} {}", reader.where(key), key, why), hint);
}

/// Hands the value of a key on to the worker, if the file has it.
void hand_on(TomlReader& reader, const std::string& name, json::value_t type, json& request) {
  const std::string key = "environment." + name;
  const auto value = reader.json_if_given(key);
  if (!value) return;
  request[name] = json::parse(*value);
  if (request[name].type() == type) return;
  refuse(reader, key, type == json::value_t::array ? "is not a list" : "is not a table",
         "docs/simulators.md has an example");
}

WorkerSettings read_worker(TomlReader& reader) {
  WorkerSettings worker;
  json request = json::object();
  if (reader.has("environment.command")) {
    worker.command = reader.texts("environment.command", {});
    if (worker.command.empty() || worker.command.front().empty()) {
      refuse(reader, "environment.command", "names no program",
             "it is a list: the program, then its arguments");
    }
    worker.name = worker.command.front();
    refuse_all(reader,
               {"environment.gymnasium", "environment.import", "environment.wrappers",
                "environment.observations", "environment.python", "environment.vector",
                "environment.seed_every_episode"},
               "is for dtool_env.py, and environment.command names another program");
  } else {
    worker.name = reader.text("environment.gymnasium", "");
    if (worker.name.empty()) {
      throw UsageError(
          fmt::format("{}: environment.gymnasium is missing", reader.where("environment")),
          "it is the id of a Gymnasium environment, such as \"CartPole-v1\"; or "
          "environment.command starts a program that has environments");
    }
    request["gymnasium"] = worker.name;
    if (reader.has("environment.import")) request["import"] = reader.text("environment.import", "");
    hand_on(reader, "wrappers", json::value_t::array, request);
    hand_on(reader, "observations", json::value_t::object, request);
    worker.python = reader.text("environment.python", worker.python);
    worker.is_vector = reader.boolean("environment.vector", false);
    if (worker.is_vector) {
      request["vector"] = true;
      reader.refuse_if_given("environment.seed_every_episode",
                             "is not for environment.vector, which goes on with its own generator");
    }
    worker.seeds_every_episode = reader.boolean("environment.seed_every_episode", false);
    if (worker.seeds_every_episode) request["seed_every_episode"] = true;
  }
  hand_on(reader, "kwargs", json::value_t::object, request);
  worker.request = request.dump();
  if (worker.request.size() > kLongestRequest) {
    refuse(reader, "environment.kwargs", fmt::format("is longer than {} bytes", kLongestRequest),
           "have the environment read a file");
  }
  worker.scores = reader.texts("environment.scores", {});
  if (std::ranges::count(worker.scores, "reward") != 0) {
    refuse(reader, "environment.scores", "names the reward, which is always the first score",
           "leave it out");
  }
  worker.workers =
      static_cast<int>(reader.integer_if_given("environment.workers", {1, 4096}).value_or(0));
  worker.on_failure =
      choose<OnFailure>(reader, "environment.on_failure",
                        {{"stop", OnFailure::stop}, {"restart", OnFailure::restart}});
  worker.step_timeout =
      std::chrono::seconds(reader.integer("environment.step_timeout_seconds", 60, {1, 86400}));
  worker.start_timeout =
      std::chrono::seconds(reader.integer("environment.start_timeout_seconds", 300, {1, 86400}));
  return worker;
}

/// Environments in processes take memory and a while to start, so few play the episodes.
constexpr ValidationStandards kValidation = {.episodes = 100, .environments = 8};

std::unique_ptr<WorkloadSettings> read(TomlReader& reader, Experiment& experiment) {
  auto settings = std::make_unique<PpoWorkloadSettings>();
  reader.refuse_if_given("environment.threads",
                         "is not for workload = \"ppo\", which has environment.workers");
  settings->learning = read_dd_ppo(reader, "ppo", experiment.optimizer, kValidation);
  settings->worker = read_worker(reader);
  settings->policy = read_policy(reader);
  settings->policy.precision = settings->learning.ppo.precision;
  return settings;
}

}  // namespace

/// An observation's size is known only once a worker has started: that of a small vector is
/// assumed.
EnvironmentSpec PpoWorkloadSettings::assumed_spec() const {
  EnvironmentSpec assumed;
  assumed.observations = {{"numbers", {64}, ObservedKind::numbers, 0}};
  assumed.actions.choices = {8};
  return assumed;
}

namespace environments {

extern const WorkloadReader kReader;
const WorkloadReader kReader = {
    read, {"environment", "ppo", "pipeline", "validation", "model.embedding"}};

}  // namespace environments

}  // namespace dtool::trainer
