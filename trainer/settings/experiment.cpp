// SPDX-License-Identifier: MIT
// The tables that every workload has; a workload's own reader reads the others.
#include "trainer/settings/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ssh/wire/words.h"
#include "trainer/settings/toml_reader.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

CheckpointSettings read_checkpoint(TomlReader& reader, const std::string& workload,
                                   const Rhythm& rhythm) {
  CheckpointSettings checkpoint;
  if (rhythm.epochs == HasEpochs::yes) {
    checkpoint.every_epochs = reader.integer("checkpoint.every_epochs", 1, {0, 1'000'000});
  } else {
    reader.refuse_if_given(
        "checkpoint.every_epochs",
        fmt::format("does not go together with workload = \"{}\", which has no epochs", workload));
  }
  checkpoint.every_steps =
      reader.integer("checkpoint.every_steps", rhythm.checkpoint_steps, {0, kMany});
  checkpoint.keep = reader.integer("checkpoint.keep", 3, {1, 1'000'000});
  checkpoint.best = reader.boolean("checkpoint.best", true);
  return checkpoint;
}

constexpr Limits<std::int64_t> kHeartbeatTimeout = {5, 86400};

DistributedSettings read_distributed(TomlReader& reader) {
  DistributedSettings distributed;
  distributed.backend = choose<Backend>(
      reader, "distributed.backend",
      {{"auto", Backend::automatic}, {"gloo", Backend::gloo}, {"nccl", Backend::nccl}});
  distributed.all_reduce = choose<Way>(reader, "distributed.all_reduce",
                                       {{"auto", Way::automatic},
                                        {"library", Way::library},
                                        {"ring", Way::ring},
                                        {"pairwise", Way::pairwise},
                                        {"halving_doubling", Way::halving_doubling},
                                        {"doubling", Way::doubling}});
  distributed.collective_timeout = std::chrono::seconds(
      reader.integer("distributed.collective_timeout_seconds", 60, {1, 86400}));
  distributed.heartbeat_timeout = std::chrono::seconds(
      reader.integer("distributed.heartbeat_timeout_seconds",
                     standard_heartbeat_timeout(process_environment), kHeartbeatTimeout));
  return distributed;
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::int64_t standard_heartbeat_timeout(const Environment& environment) {
  const auto text = environment("DTOOL_LOST_AFTER").value_or("");
  const auto seconds = host::parse_number<std::int64_t>(text).value_or(60);
  return std::clamp(seconds, kHeartbeatTimeout.least, kHeartbeatTimeout.most);
}

OptimizerSettings read_optimizer(TomlReader& reader, const OptimizerStandards& standards) {
  OptimizerSettings optimizer;
  optimizer.kind = choose<OptimizerKind>(reader, "optimizer.kind",
                                         {{"adam", OptimizerKind::adam},
                                          {"adamw", OptimizerKind::adamw},
                                          {"sgd", OptimizerKind::sgd},
                                          {"lamb", OptimizerKind::lamb}});
  const bool sgd = optimizer.kind == OptimizerKind::sgd;
  optimizer.learning_rate =
      reader.number("optimizer.learning_rate", sgd ? 1e-2 : standards.learning_rate, {1e-12, 1e3});
  if (!standards.why_no_scaling.empty()) {
    reader.refuse_if_given("optimizer.scale_learning_rate", standards.why_no_scaling);
  } else {
    optimizer.scaling = choose<Scaling>(
        reader, "optimizer.scale_learning_rate",
        {{"none", Scaling::none}, {"linear", Scaling::linear}, {"sqrt", Scaling::sqrt}});
  }
  if (sgd) {
    refuse_all(reader, {"optimizer.beta1", "optimizer.beta2", "optimizer.epsilon"},
               "is not for sgd");
    optimizer.momentum = reader.number("optimizer.momentum", 0.9, {0.0, 0.999999});
  } else {
    reader.refuse_if_given("optimizer.momentum", "is only for sgd");
    optimizer.beta1 = reader.number("optimizer.beta1", 0.9, {0.0, 0.999999});
    optimizer.beta2 = reader.number("optimizer.beta2", 0.999, {0.0, 0.999999});
    optimizer.epsilon = reader.number("optimizer.epsilon", 1e-8, {1e-30, 1.0});
  }
  const bool decoupled =
      optimizer.kind == OptimizerKind::adamw || optimizer.kind == OptimizerKind::lamb;
  const double decay = decoupled ? 0.01 : 0;
  optimizer.weight_decay = reader.number("optimizer.weight_decay", decay, {0.0, 1e3});
  optimizer.decays_vectors = reader.boolean("optimizer.decay_vectors", true);
  optimizer.clip_norm = reader.number("optimizer.clip_norm", standards.clip_norm, {0.0, 1e12});
  return optimizer;
}

Experiment read_experiment(const std::filesystem::path& file) {
  TomlReader reader(file);
  Experiment experiment;
  read_workload(reader, experiment);
  const Rhythm rhythm = experiment.own->rhythm();
  experiment.checkpoint = read_checkpoint(reader, experiment.workload, rhythm);
  experiment.distributed = read_distributed(reader);
  experiment.log_every_steps = reader.integer("logging.every_steps", rhythm.log_steps, {1, kMany});
  experiment.log_tensorboard = reader.boolean("logging.tensorboard", true);
  reader.refuse_unknown_keys();
  experiment.settings = reader.settings();
  return experiment;
}

void check_machines(const Experiment& experiment, const std::filesystem::path& file, int machines) {
  if (experiment.distributed_nodes.value_or(machines) == machines) return;
  throw UsageError(
      fmt::format("{}: distributed_nodes is {}, but this run has {} machine{}", file.string(),
                  *experiment.distributed_nodes, machines, machines == 1 ? "" : "s"),
      "drop the key, or make it the number of machines");
}

double scaled_learning_rate(double learning_rate, Scaling scaling, int world_size) {
  switch (scaling) {
    case Scaling::linear:
      return learning_rate * world_size;
    case Scaling::sqrt:
      return learning_rate * std::sqrt(world_size);
    case Scaling::none:
      break;
  }
  return learning_rate;
}

#define DTOOL_WORKLOAD(word, folder)   \
  namespace folder {                   \
  extern const WorkloadReader kReader; \
  }
#include "trainer/settings/workloads.def"
#undef DTOOL_WORKLOAD

namespace {

/// The table of workloads, as reading sees it.
std::vector<Choice<const WorkloadReader*>> readers() {
  return {
#define DTOOL_WORKLOAD(word, folder) {#word, &folder::kReader},
#include "trainer/settings/workloads.def"
#undef DTOOL_WORKLOAD
  };
}

}  // namespace

void read_workload(TomlReader& reader, Experiment& experiment) {
  const auto all = readers();
  std::vector<std::string> words;
  for (const auto& each : all) words.emplace_back(each.word);
  experiment.workload = reader.word("workload", words);
  experiment.distributed_nodes = reader.integer_if_given("distributed_nodes", {1, 1 << 20});
  const auto chosen = std::ranges::find(words, experiment.workload) - words.begin();
  const WorkloadReader* its_own = all[static_cast<std::size_t>(chosen)].value;
  for (const auto& [word, other] : all) {
    if (other == its_own) continue;
    std::vector<std::string> keys = other->own_keys;
    std::erase_if(keys, [&](const std::string& each) {
      return std::ranges::count(its_own->own_keys, each) != 0;
    });
    refuse_all(reader, keys, fmt::format("is only for workload = \"{}\"", word));
  }
  experiment.own = its_own->read(reader, experiment);
}

}  // namespace dtool::trainer
