// SPDX-License-Identifier: MIT
// Converts files to tensors once, so that a step only gathers rows. Images stay bytes until then,
// which takes a quarter of the memory.
#include "trainer/data/data_set.h"

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <utility>

#include "trainer/data/csv.h"
#include "trainer/data/digits.h"
#include "trainer/data/gather_bytes.h"
#include "trainer/data/idx.h"
#include "trainer/data/random_values.h"

namespace dtool::trainer {
namespace {

/// A tensor that takes the numbers over: for data that fills half of the memory a copy, however
/// short-lived, would be too much.
template <class Value>
at::Tensor take(std::vector<Value>& values, at::IntArrayRef shape, at::ScalarType type) {
  const auto kept = std::make_shared<std::vector<Value>>(std::move(values));
  return at::from_blob(
      kept->data(), shape, [kept](void*) {}, at::TensorOptions(type));
}

DataSet to_tensors(LabelledImages& bytes, at::Device device) {
  return {take(bytes.images, {bytes.count, bytes.pixels}, at::kByte).to(device),
          take(bytes.labels, {bytes.count}, at::kByte).to(device, at::kLong)};
}

DataSet to_tensors(LabelledValues& values, at::Device device) {
  const auto count = std::ssize(values.targets);
  const auto features = std::ssize(values.inputs) / count;
  return {take(values.inputs, {count, features}, at::kFloat).to(device),
          take(values.targets, {count, 1}, at::kFloat).to(device)};
}

DataSets load_images(const DataSettings& settings, at::Device device) {
  TrainAndTest bytes;
  if (settings.source != DataSource::digits) {
    bytes = read_image_files(settings.files.paths);
  } else {
    bytes.train = draw_digits(settings.train_samples, settings.drawing_seed);
    bytes.test = draw_digits(settings.test_samples, ~settings.drawing_seed);
    bytes.classes = 10;
  }
  return {to_tensors(bytes.train, device),
          to_tensors(bytes.test, device),
          {1, bytes.train.rows, bytes.train.columns},
          bytes.classes};
}

DataSet to_tensors(CsvSet& set, TargetKind kind, at::Device device) {
  const auto table = [&](auto& values, at::ScalarType type) {
    return take(values, {set.rows, std::ssize(values) / set.rows}, type).to(device);
  };
  DataSet tensors{table(set.inputs, at::kFloat), {}};
  tensors.targets = kind == TargetKind::classes  ? table(set.classes, at::kLong).squeeze(1)
                    : kind == TargetKind::values ? table(set.values, at::kFloat)
                                                 : tensors.inputs;
  return tensors;
}

DataSets load_csv(const FileSettings& files, at::Device device) {
  const CsvTable train = read_csv(files.paths[0], files.csv.format);
  std::optional<CsvTable> test;
  if (files.paths.size() > 1) test = read_csv(files.paths[1], files.csv.format);
  CsvSets sets = make_csv_sets(train, test, files.csv, files.targets);
  const auto inputs = static_cast<std::int64_t>(sets.inputs.size());
  const auto outputs = files.targets == TargetKind::classes  ? sets.classes
                       : files.targets == TargetKind::values ? std::ssize(sets.targets)
                                                             : inputs;
  return {to_tensors(sets.train, files.targets, device),
          to_tensors(sets.test, files.targets, device),
          {inputs},
          outputs};
}

DataSets load_random(const DataSettings& settings, at::Device device) {
  const auto draw = [&](std::int64_t samples, std::uint64_t seed) {
    LabelledValues values = draw_values(samples, settings.features, settings.random_targets, seed,
                                        settings.drawing_seed);
    return to_tensors(values, device);
  };
  DataSets sets{draw(settings.train_samples, settings.drawing_seed), {}, {settings.features}, 1};
  sets.test =
      settings.test_samples == 0 ? sets.train : draw(settings.test_samples, ~settings.drawing_seed);
  return sets;
}

/// On the CPU no copy: it must not outlive `samples`.
at::Tensor index_on(at::Device device, std::span<const std::int64_t> samples) {
  return at::from_blob(const_cast<std::int64_t*>(samples.data()),
                       {static_cast<std::int64_t>(samples.size())}, at::TensorOptions(at::kLong))
      .to(device);
}

/// Bytes are 0 black to 255 white, floats are as they are.
at::Tensor to_floats(const at::Tensor& inputs) {
  return inputs.scalar_type() == at::kByte ? inputs.to(at::kFloat).div_(255) : inputs;
}

}  // namespace

DataSets load_data(const DataSettings& settings, at::Device device) {
  if (settings.source == DataSource::csv) return load_csv(settings.files, device);
  return settings.source == DataSource::random ? load_random(settings, device)
                                               : load_images(settings, device);
}

Batch gather(const DataSet& set, std::span<const std::int64_t> samples) {
  const at::Tensor numbers = index_on(set.targets.device(), samples);
  if (!set.inputs.is_cpu() || set.inputs.scalar_type() != at::kByte) return gather(set, numbers);
  at::Tensor inputs = at::empty({static_cast<std::int64_t>(samples.size()), set.inputs.size(1)});
  gather_bytes(set.inputs.data_ptr<std::uint8_t>(), set.inputs.size(1), samples,
               inputs.data_ptr<float>());
  return {inputs, set.targets.index_select(0, numbers)};
}

Batch gather(const DataSet& set, const at::Tensor& samples) {
  return {to_floats(set.inputs.index_select(0, samples)), set.targets.index_select(0, samples)};
}

Batch gather(const DataSet& set, Range range) {
  return {to_floats(set.inputs.slice(0, range.begin, range.end)),
          set.targets.slice(0, range.begin, range.end)};
}

}  // namespace dtool::trainer
