// One function per table of the experiment file.
#include "trainer/experiment.h"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace dtool::trainer {
namespace {

constexpr std::int64_t kMany = std::numeric_limits<std::int64_t>::max();

std::string standard_mnist_folder() {
  if (const char* folder = std::getenv("DTOOL_MNIST_DIR"); folder != nullptr && *folder != '\0') {
    return folder;
  }
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "" : home) + "/.dtool/data/mnist";
}

ModelSettings read_model(TomlReader& reader) {
  return {.hidden = reader.integers("model.hidden", {50}, {1, 1 << 20})};
}

DataSettings read_data(TomlReader& reader) {
  DataSettings data;
  const auto source = reader.word("data.source", {"mnist", "digits"});
  if (source == "mnist") {
    data.source = DataSource::mnist;
    data.path = reader.text("data.path", standard_mnist_folder());
    for (const char* key : {"data.train_samples", "data.test_samples", "data.drawing_seed"}) {
      reader.refuse_if_given(key, "is only for data.source = \"digits\"");
    }
  } else {
    data.source = DataSource::digits;
    reader.refuse_if_given("data.path", "is only for data.source = \"mnist\"");
    data.train_samples = reader.integer("data.train_samples", 20000, {1, 10'000'000});
    data.test_samples = reader.integer("data.test_samples", 2000, {1, 10'000'000});
    data.drawing_seed =
        static_cast<std::uint64_t>(reader.integer("data.drawing_seed", 0, {0, kMany}));
  }
  return data;
}

OptimizerSettings read_optimizer(TomlReader& reader) {
  OptimizerSettings optimizer;
  optimizer.learning_rate = reader.number("optimizer.learning_rate", 1e-3, {1e-12, 1e3});
  const auto scaling =
      reader.word("optimizer.scale_learning_rate", {"none", "linear", "sqrt"}, "none");
  optimizer.scaling = scaling == "linear" ? Scaling::linear
                      : scaling == "sqrt" ? Scaling::sqrt
                                          : Scaling::none;
  optimizer.beta1 = reader.number("optimizer.beta1", 0.9, {0.0, 0.999999});
  optimizer.beta2 = reader.number("optimizer.beta2", 0.999, {0.0, 0.999999});
  optimizer.epsilon = reader.number("optimizer.epsilon", 1e-8, {1e-30, 1.0});
  return optimizer;
}

TrainSettings read_train(TomlReader& reader) {
  TrainSettings train;
  train.epochs = reader.integer("train.epochs", 5, {1, 1'000'000});
  train.batch_size = reader.integer("train.batch_size", 64, {1, 10'000'000});
  train.evaluate_every = reader.integer("train.evaluate_every", 1, {0, 1'000'000});
  return train;
}

CheckpointSettings read_checkpoint(TomlReader& reader) {
  CheckpointSettings checkpoint;
  checkpoint.every_epochs = reader.integer("checkpoint.every_epochs", 1, {0, 1'000'000});
  checkpoint.keep = reader.integer("checkpoint.keep", 3, {1, 1'000'000});
  return checkpoint;
}

DistributedSettings read_distributed(TomlReader& reader) {
  DistributedSettings distributed;
  const auto backend = reader.word("distributed.backend", {"auto", "gloo", "nccl"}, "auto");
  distributed.backend = backend == "gloo"   ? Backend::gloo
                        : backend == "nccl" ? Backend::nccl
                                            : Backend::automatic;
  distributed.collective_timeout = std::chrono::seconds(
      reader.integer("distributed.collective_timeout_seconds", 60, {1, 86400}));
  return distributed;
}

}  // namespace

Experiment read_experiment(const std::filesystem::path& file) {
  TomlReader reader(file);
  Experiment experiment;
  experiment.workload = reader.word("workload", {"classifier"});
  experiment.distributed_nodes = reader.integer_if_given("distributed_nodes", {1, 1 << 20});
  experiment.model = read_model(reader);
  experiment.data = read_data(reader);
  experiment.optimizer = read_optimizer(reader);
  experiment.train = read_train(reader);
  experiment.checkpoint = read_checkpoint(reader);
  experiment.distributed = read_distributed(reader);
  experiment.log_every_steps = reader.integer("logging.every_steps", 100, {1, kMany});
  experiment.log_tensorboard = reader.boolean("logging.tensorboard", true);
  reader.refuse_unknown_keys();
  experiment.settings = reader.settings();
  return experiment;
}

std::int64_t multiply_adds_per_step(const Experiment& experiment) {
  std::int64_t weights = 0;
  std::int64_t inputs = 28 * 28;
  for (const auto width : experiment.model.hidden) {
    weights += inputs * width;
    inputs = width;
  }
  return (weights + inputs * 10) * experiment.train.batch_size;
}

double scaled_learning_rate(const OptimizerSettings& optimizer, int world_size) {
  switch (optimizer.scaling) {
    case Scaling::linear:
      return optimizer.learning_rate * world_size;
    case Scaling::sqrt:
      return optimizer.learning_rate * std::sqrt(world_size);
    case Scaling::none:
      break;
  }
  return optimizer.learning_rate;
}

}  // namespace dtool::trainer
