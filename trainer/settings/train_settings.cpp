// SPDX-License-Identifier: MIT
#include "trainer/settings/train_settings.h"

#include <fmt/format.h>

#include "trainer/settings/toml_reader.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

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

}  // namespace

TrainSettings read_train(TomlReader& reader, const OptimizerSettings& optimizer) {
  TrainSettings train;
  train.stages = read_stages(reader, optimizer);
  train.batch_per = choose<BatchPer>(
      reader, "train.batch_size_per",
      {{"rank", BatchPer::rank}, {"machine", BatchPer::machine}, {"run", BatchPer::run}});
  train.evaluate_every = reader.integer("train.evaluate_every", 1, {0, 1'000'000});
  train.precision = read_precision(reader, "train.precision");
  train.cuda_graph = read_cuda_graph(reader, "train.cuda_graph");
  return train;
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
