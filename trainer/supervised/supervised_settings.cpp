// SPDX-License-Identifier: MIT
#include "trainer/supervised/supervised_settings.h"

#include <algorithm>
#include <limits>

#include "trainer/settings/train_settings.h"

namespace dtool::trainer {
namespace {

ModelKind kind_of(const std::string& workload) {
  if (workload == "regression") return ModelKind::regression;
  if (workload == "classifier") return ModelKind::classifier;
  return workload == "autoencoder" ? ModelKind::autoencoder : ModelKind::torchscript;
}

std::unique_ptr<WorkloadSettings> read(TomlReader& reader, Experiment& experiment) {
  auto settings = std::make_unique<SupervisedSettings>();
  settings->kind = kind_of(experiment.workload);
  settings->model = read_model(reader, settings->kind);
  settings->data = read_data(reader, settings->kind, settings->model);
  experiment.optimizer = read_optimizer(reader);
  settings->train = read_train(reader, experiment.optimizer);
  settings->schedule = read_schedule(reader, settings->train.stages);
  return settings;
}

}  // namespace

std::int64_t SupervisedSettings::multiply_adds_per_batch(const RankCount& /*ranks*/) const {
  if (kind == ModelKind::torchscript) return std::numeric_limits<std::int64_t>::max();
  std::int64_t largest = 0;
  for (const Stage& each : train.stages) largest = std::max(largest, each.batch_size);
  Shape shape = {1, 28, 28};
  if (data.features > 0) shape = {data.features};
  const std::vector<Shape> shapes = shapes_along(model.layers, shape);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    sum += multiply_adds(model.layers[i], shapes[i]);
  }
  const auto outputs = model.target == Target::inputs ? count_values(shape) : 10;
  return (sum + count_values(shapes.back()) * outputs) * largest;
}

namespace supervised {

extern const WorkloadReader kReader;
const WorkloadReader kReader = {read, {}};

}  // namespace supervised

namespace {

std::int64_t divide_up(std::int64_t number, std::int64_t by) {
  return (number + by - 1) / by;
}

}  // namespace

StagePlan::StagePlan(std::vector<Stage> stages, std::int64_t share)
    : stages_(std::move(stages)), share_(share) {}

const Stage& StagePlan::stage(const Progress& progress) const {
  return stages_[static_cast<std::size_t>(progress.stage)];
}

bool StagePlan::stage_is_over(const Progress& progress) const {
  const Stage& current = stage(progress);
  return current.steps > 0 ? progress.stage_steps >= current.steps
                           : progress.stage_epochs >= current.epochs;
}

bool StagePlan::is_over(const Progress& progress) const {
  return static_cast<std::size_t>(progress.stage) + 1 == stages_.size() && stage_is_over(progress);
}

std::int64_t StagePlan::steps_of_epoch(const Stage& stage) const {
  return divide_up(divide_up(share_, stage.batch_size), stage.accumulate) * stage.repeats;
}

std::int64_t StagePlan::epochs() const {
  std::int64_t sum = 0;
  for (const Stage& each : stages_) {
    if (each.epochs == 0) return 0;
    sum += each.epochs;
  }
  return sum;
}

double StagePlan::epochs_done(const Progress& progress) const {
  const auto whole = static_cast<double>(share_ * progress.world_size);
  return static_cast<double>(progress.epochs) + static_cast<double>(progress.samples) / whole;
}

double StagePlan::share_done(const Progress& progress) const {
  if (const auto whole = epochs(); whole > 0) {
    return std::min(1.0, epochs_done(progress) / static_cast<double>(whole));
  }
  std::int64_t steps = 0;
  for (const Stage& each : stages_) {
    steps += each.steps > 0 ? each.steps : each.epochs * steps_of_epoch(each);
  }
  return std::min(1.0, static_cast<double>(progress.steps) / static_cast<double>(steps));
}

}  // namespace dtool::trainer
