// One function per table of the experiment file.
#include "trainer/settings/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "trainer/settings/choice.h"
#include "trainer/settings/model_settings.h"
#include "trainer/settings/schedule_settings.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

constexpr std::int64_t kMany = std::numeric_limits<std::int64_t>::max();

void read_random(TomlReader& reader, DataSettings& data) {
  data.features = reader.integer("data.features", 10, {1, 1 << 24});
  data.random_targets =
      choose<RandomTargets>(reader, "data.random_targets",
                            {{"noise", RandomTargets::noise}, {"linear", RandomTargets::linear}});
  data.train_samples = reader.integer("data.train_samples", 10000, {1, 100'000'000});
  data.test_samples = reader.integer("data.test_samples", 0, {0, 100'000'000});
}

std::vector<Choice<DataSource>> sources_of(WorkloadKind workload) {
  std::vector<Choice<DataSource>> sources = {{"csv", DataSource::csv}};
  if (workload != WorkloadKind::regression) {
    sources.insert(
        sources.begin(),
        {{"mnist", DataSource::mnist}, {"digits", DataSource::digits}, {"idx", DataSource::idx}});
  }
  if (workload != WorkloadKind::classifier) sources.push_back({"random", DataSource::random});
  return sources;
}

/// What a table's columns are to hold for a model.
TargetKind targets_of(const ModelSettings& model) {
  if (model.target == Target::inputs) return TargetKind::none;
  return model.loss == Loss::cross_entropy ? TargetKind::classes : TargetKind::values;
}

DataSettings read_data(TomlReader& reader, WorkloadKind workload) {
  DataSettings data;
  data.source = choose(reader, "data.source", sources_of(workload), Default::none);
  if (data.source != DataSource::random) {
    refuse_all(reader, {"data.features", "data.random_targets"},
               "is only for data.source = \"random\"");
  }
  if (data.source == DataSource::digits) {
    data.train_samples = reader.integer("data.train_samples", 20000, {1, 10'000'000});
    data.test_samples = reader.integer("data.test_samples", 2000, {1, 10'000'000});
  } else if (data.source == DataSource::random) {
    read_random(reader, data);
  } else {
    refuse_all(reader, {"data.train_samples", "data.test_samples", "data.drawing_seed"},
               "is only for data that is drawn");
    data.files = read_file_settings(reader, data.source == DataSource::mnist ? FileSource::mnist
                                            : data.source == DataSource::idx ? FileSource::idx
                                                                             : FileSource::csv);
  }
  if (data.files.files.empty()) {
    refuse_file_settings(reader);
    data.drawing_seed =
        static_cast<std::uint64_t>(reader.integer("data.drawing_seed", 0, {0, kMany}));
  }
  data.prefetch = reader.integer_if_given("data.prefetch", {0, 1024});
  return data;
}

OptimizerSettings read_optimizer(TomlReader& reader, WorkloadKind workload) {
  const bool objectnav = workload == WorkloadKind::objectnav;
  OptimizerSettings optimizer;
  optimizer.kind = choose<OptimizerKind>(reader, "optimizer.kind",
                                         {{"adam", OptimizerKind::adam},
                                          {"adamw", OptimizerKind::adamw},
                                          {"sgd", OptimizerKind::sgd}});
  const bool sgd = optimizer.kind == OptimizerKind::sgd;
  optimizer.learning_rate = reader.number("optimizer.learning_rate",
                                          sgd         ? 1e-2
                                          : objectnav ? 3e-4
                                                      : 1e-3,
                                          {1e-12, 1e3});
  if (objectnav) {
    reader.refuse_if_given("optimizer.scale_learning_rate",
                           "does not go together with workload = \"objectnav\": [pipeline] has the "
                           "learning rate grow with the square root of the ranks");
  } else {
    optimizer.scaling = choose<Scaling>(
        reader, "optimizer.scale_learning_rate",
        {{"none", Scaling::none}, {"linear", Scaling::linear}, {"sqrt", Scaling::sqrt}});
  }
  if (sgd) {
    refuse_all(reader, {"optimizer.beta1", "optimizer.beta2", "optimizer.epsilon"},
               "is only for adam and adamw");
    optimizer.momentum = reader.number("optimizer.momentum", 0.9, {0.0, 0.999999});
  } else {
    reader.refuse_if_given("optimizer.momentum", "is only for sgd");
    optimizer.beta1 = reader.number("optimizer.beta1", 0.9, {0.0, 0.999999});
    optimizer.beta2 = reader.number("optimizer.beta2", 0.999, {0.0, 0.999999});
    optimizer.epsilon = reader.number("optimizer.epsilon", 1e-8, {1e-30, 1.0});
  }
  const double decay = optimizer.kind == OptimizerKind::adamw ? 0.01 : 0;
  optimizer.weight_decay = reader.number("optimizer.weight_decay", decay, {0.0, 1e3});
  optimizer.clip_norm = reader.number("optimizer.clip_norm", objectnav ? 0.5 : 0, {0.0, 1e12});
  return optimizer;
}

Stage read_stage(TomlReader& reader, const std::string& prefix, const Stage& standard) {
  Stage stage = standard;
  stage.batch_size = reader.integer(prefix + "batch_size", standard.batch_size, {1, 10'000'000});
  stage.accumulate = reader.integer(prefix + "accumulate", standard.accumulate, {1, 1'000'000});
  stage.repeats = reader.integer(prefix + "repeats", standard.repeats, {1, 1'000'000});
  return stage;
}

/// Without stages, `train` is the only one; with them, it has what they do not say.
std::vector<Stage> read_stages(TomlReader& reader, const OptimizerSettings& optimizer) {
  Stage standard = read_stage(reader, "train.", {0, 0, 64, 1, 1, optimizer.learning_rate});
  const auto count = reader.count_tables("stage");
  if (count == 0) {
    standard.epochs = reader.integer("train.epochs", 5, {1, 1'000'000});
    return {standard};
  }
  reader.refuse_if_given("train.epochs", "does not go together with [[stage]], which has its own");
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < count; ++i) {
    const auto prefix = fmt::format("stage[{}].", i);
    Stage stage = read_stage(reader, prefix, standard);
    stage.epochs = reader.integer_if_given(prefix + "epochs", {1, 1'000'000}).value_or(0);
    stage.steps = reader.integer_if_given(prefix + "steps", {1, kMany}).value_or(0);
    if ((stage.epochs == 0) == (stage.steps == 0)) {
      throw UsageError(fmt::format("{}: stage[{}] needs a length: epochs or steps, one of them",
                                   reader.where(fmt::format("stage[{}]", i)), i));
    }
    stage.learning_rate =
        reader.number(prefix + "learning_rate", optimizer.learning_rate, {1e-12, 1e3});
    stages.push_back(stage);
  }
  return stages;
}

TrainSettings read_train(TomlReader& reader, const OptimizerSettings& optimizer) {
  TrainSettings train;
  train.stages = read_stages(reader, optimizer);
  train.batch_per = choose<BatchPer>(
      reader, "train.batch_size_per",
      {{"rank", BatchPer::rank}, {"machine", BatchPer::machine}, {"run", BatchPer::run}});
  train.evaluate_every = reader.integer("train.evaluate_every", 1, {0, 1'000'000});
  train.precision =
      choose<Precision>(reader, "train.precision",
                        {{"float32", Precision::float32}, {"bfloat16", Precision::bfloat16}});
  train.cuda_graph = choose<CudaGraph>(
      reader, "train.cuda_graph",
      {{"auto", CudaGraph::automatic}, {"on", CudaGraph::on}, {"off", CudaGraph::off}});
  return train;
}

CheckpointSettings read_checkpoint(TomlReader& reader, const Experiment& experiment) {
  CheckpointSettings checkpoint;
  std::int64_t every_steps = 0;
  if (experiment.objectnav) {
    reader.refuse_if_given(
        "checkpoint.every_epochs",
        "does not go together with workload = \"objectnav\", which has no epochs");
    every_steps = std::max<std::int64_t>(1, experiment.objectnav->pipeline.steps / 60);
  } else {
    checkpoint.every_epochs = reader.integer("checkpoint.every_epochs", 1, {0, 1'000'000});
  }
  checkpoint.every_steps = reader.integer("checkpoint.every_steps", every_steps, {0, kMany});
  checkpoint.keep = reader.integer("checkpoint.keep", 3, {1, 1'000'000});
  checkpoint.best = reader.boolean("checkpoint.best", true);
  return checkpoint;
}

DistributedSettings read_distributed(TomlReader& reader) {
  DistributedSettings distributed;
  distributed.backend = choose<Backend>(
      reader, "distributed.backend",
      {{"auto", Backend::automatic}, {"gloo", Backend::gloo}, {"nccl", Backend::nccl}});
  distributed.all_reduce = choose<AllReduce>(reader, "distributed.all_reduce",
                                             {{"auto", AllReduce::automatic},
                                              {"library", AllReduce::library},
                                              {"ring", AllReduce::ring},
                                              {"pairwise", AllReduce::pairwise},
                                              {"halving_doubling", AllReduce::halving_doubling},
                                              {"doubling", AllReduce::doubling},
                                              {"tree", AllReduce::tree}});
  distributed.collective_timeout = std::chrono::seconds(
      reader.integer("distributed.collective_timeout_seconds", 60, {1, 86400}));
  return distributed;
}

/// What the workloads that learn from samples have.
void read_supervised(TomlReader& reader, Experiment& experiment) {
  refuse_objectnav(reader);
  experiment.model = read_model(reader, experiment.workload);
  experiment.data = read_data(reader, experiment.workload);
  experiment.data.files.targets = targets_of(experiment.model);
  experiment.optimizer = read_optimizer(reader, experiment.workload);
  experiment.train = read_train(reader, experiment.optimizer);
  experiment.schedule = read_schedule(reader, experiment.train.stages);
}

}  // namespace

Experiment read_experiment(const std::filesystem::path& file) {
  TomlReader reader(file);
  Experiment experiment;
  experiment.workload = choose<WorkloadKind>(reader, "workload",
                                             {{"regression", WorkloadKind::regression},
                                              {"classifier", WorkloadKind::classifier},
                                              {"autoencoder", WorkloadKind::autoencoder},
                                              {"torchscript", WorkloadKind::torchscript},
                                              {"objectnav", WorkloadKind::objectnav}},
                                             Default::none);
  experiment.distributed_nodes = reader.integer_if_given("distributed_nodes", {1, 1 << 20});
  const bool objectnav = experiment.workload == WorkloadKind::objectnav;
  if (objectnav) {
    experiment.objectnav = read_objectnav(reader);
    experiment.optimizer = read_optimizer(reader, experiment.workload);
  } else {
    read_supervised(reader, experiment);
  }
  experiment.checkpoint = read_checkpoint(reader, experiment);
  experiment.distributed = read_distributed(reader);
  experiment.log_every_steps =
      reader.integer("logging.every_steps", objectnav ? 100'000 : 100, {1, kMany});
  experiment.log_tensorboard = reader.boolean("logging.tensorboard", true);
  reader.refuse_unknown_keys();
  experiment.settings = reader.settings();
  return experiment;
}

const ObjectNavSettings& objectnav_of(const Experiment& experiment,
                                      const std::filesystem::path& file) {
  if (experiment.objectnav) return *experiment.objectnav;
  throw UsageError(
      fmt::format("{}: rollout shows episodes of objectnav, and this is another workload",
                  file.string()),
      "give an experiment with workload = \"objectnav\"");
}

std::int64_t multiply_adds_per_batch(const Experiment& experiment) {
  if (experiment.objectnav) return multiply_adds_per_batch(*experiment.objectnav);
  std::int64_t largest = 0;
  for (const Stage& each : experiment.train.stages) largest = std::max(largest, each.batch_size);
  Shape shape = {1, 28, 28};
  if (experiment.data.features > 0) shape = {experiment.data.features};
  const auto inputs = count_values(shape);
  std::int64_t sum = 0;
  for (const Layer& each : experiment.model.layers) {
    sum += multiply_adds(each, shape);
    shape = shape_after(each, shape);
  }
  const auto outputs = experiment.model.target == Target::inputs ? inputs : 10;
  return (sum + count_values(shape) * outputs) * largest;
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

std::int64_t batch_of_rank(std::int64_t batch_size, BatchPer per, int local_world_size,
                           int world_size) {
  const int parts = per == BatchPer::rank      ? 1
                    : per == BatchPer::machine ? local_world_size
                                               : world_size;
  if (batch_size % parts == 0) return batch_size / parts;
  throw UsageError(
      fmt::format("a batch of {} samples a {} cannot be dealt out evenly to {} ranks", batch_size,
                  per == BatchPer::machine ? "machine" : "run", parts),
      fmt::format("{} or {} can", batch_size / parts * parts, (batch_size / parts + 1) * parts));
}

}  // namespace dtool::trainer
