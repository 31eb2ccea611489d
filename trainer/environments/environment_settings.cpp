// SPDX-License-Identifier: MIT
#include "trainer/environments/environment_settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trainer/settings/toml_reader.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using nlohmann::json;

/// What fits into a worker's socket before it reads.
constexpr std::size_t kLongestRequest = std::size_t{1} << 16;

/// The value of a key as JSON, if the file has it.
void hand_on(TomlReader& reader, const std::string& key, json& request) {
  if (const auto value = reader.json_if_given("environment." + key)) {
    request[key] = json::parse(*value);
  }
}

[[noreturn]] void refuse(const TomlReader& reader, const std::string& key, const std::string& why,
                         const std::string& hint) {
  throw UsageError(fmt::format("{}: {} {}", reader.where(key), key, why), hint);
}

void check_wrappers(const TomlReader& reader, const json& request) {
  const auto wrappers = request.find("wrappers");
  if (wrappers == request.end()) return;
  const auto is_one = [](const json& each) {
    return each.is_string() || (each.is_object() && each.size() <= 2 && each.contains("name") &&
                                each["name"].is_string() &&
                                (each.size() == 1 || each.value("kwargs", json()).is_object()));
  };
  if (wrappers->is_array() && std::all_of(wrappers->begin(), wrappers->end(), is_one)) return;
  refuse(reader, "environment.wrappers", "is not a list of wrappers",
         "each is a name, \"package.module.Wrapper\", or {name = …, kwargs = {…}}");
}

void check_observations(const TomlReader& reader, const json& request) {
  const auto kinds = request.find("observations");
  if (kinds == request.end()) return;
  const auto is_one = [](const json& each) {
    return each == "codes" || each == "pixels" || each == "numbers" || each == "drop" ||
           (each.is_number_integer() && each >= 1 && each <= 256);
  };
  if (kinds->is_object() && std::all_of(kinds->begin(), kinds->end(), is_one)) return;
  refuse(reader, "environment.observations", "has something else than names and their kinds",
         "a kind is \"codes\", \"pixels\", \"numbers\", \"drop\" or a number of codes up to 256");
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
                "environment.observations", "environment.python"},
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
    hand_on(reader, "wrappers", request);
    check_wrappers(reader, request);
    hand_on(reader, "observations", request);
    check_observations(reader, request);
    worker.python = reader.text("environment.python", worker.python);
  }
  hand_on(reader, "kwargs", request);
  if (request.contains("kwargs") && !request["kwargs"].is_object()) {
    refuse(reader, "environment.kwargs", "is not a table", "write kwargs = {name = value}");
  }
  worker.request = request.dump();
  if (worker.request.size() > kLongestRequest) {
    refuse(reader, "environment.kwargs", fmt::format("is longer than {} bytes", kLongestRequest),
           "have the environment read a file");
  }
  worker.scores = reader.texts("environment.scores", {});
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
  return settings;
}

}  // namespace

/// An observation's size is known only once a worker has started: that of a small vector is
/// assumed.
std::int64_t PpoWorkloadSettings::multiply_adds_per_batch(const RankCount& ranks) const {
  EnvironmentSpec assumed;
  assumed.observations = {{"numbers", {64}, ObservedKind::numbers, 0}};
  assumed.actions.choices = {8};
  const std::int64_t mine = count_samplers(learning, 0, ranks.on_a_machine());
  const std::int64_t at_once =
      (mine + learning.ppo.num_mini_batch - 1) / learning.ppo.num_mini_batch;
  return multiply_adds(policy, assumed) * at_once *
         plan_pipeline(learning, nodes_of(learning, ranks)).longest_rollout();
}

namespace environments {

extern const WorkloadReader kReader;
const WorkloadReader kReader = {
    read, {"environment", "ppo", "pipeline", "validation", "model.embedding"}};

}  // namespace environments

}  // namespace dtool::trainer
