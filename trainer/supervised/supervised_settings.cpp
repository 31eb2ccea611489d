// SPDX-License-Identifier: MIT
#include "trainer/supervised/supervised_settings.h"

#include <algorithm>
#include <limits>

#include "trainer/settings/schedule_settings.h"

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
  const auto inputs = count_values(shape);
  std::int64_t sum = 0;
  for (const Layer& each : model.layers) {
    sum += multiply_adds(each, shape);
    shape = shape_after(each, shape);
  }
  const auto outputs = model.target == Target::inputs ? inputs : 10;
  return (sum + count_values(shape) * outputs) * largest;
}

namespace supervised {

extern const WorkloadReader kReader;
const WorkloadReader kReader = {read, {}};

}  // namespace supervised

}  // namespace dtool::trainer
