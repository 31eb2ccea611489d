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

using Memory = std::shared_ptr<std::pmr::memory_resource>;

/// A tensor that takes the numbers over: for data that fills half of the memory a copy, however
/// short-lived, would be too much.
template <class Value>
at::Tensor take(std::pmr::vector<Value>& values, at::IntArrayRef shape, at::ScalarType type,
                const Memory& memory) {
  struct Kept {
    Memory memory;  // freed after the values
    std::pmr::vector<Value> values;
  };
  const auto kept = std::make_shared<Kept>(memory, std::move(values));
  return at::from_blob(
      kept->values.data(), shape, [kept](void*) {}, at::TensorOptions(type));
}

DataSet to_tensors(LabelledImages& bytes, const Memory& memory) {
  std::pmr::vector<std::int64_t> labels(bytes.labels.begin(), bytes.labels.end(), memory.get());
  return {take(bytes.images, {bytes.count, bytes.pixels}, at::kByte, memory),
          take(labels, {bytes.count}, at::kLong, memory)};
}

DataSet to_tensors(LabelledValues& values, const Memory& memory) {
  const auto count = std::ssize(values.targets);
  const auto features = std::ssize(values.inputs) / count;
  return {take(values.inputs, {count, features}, at::kFloat, memory),
          take(values.targets, {count, 1}, at::kFloat, memory)};
}

TrainAndTest images_of(const DataSettings& settings, std::pmr::memory_resource* memory) {
  if (settings.source != DataSource::digits) return read_image_files(settings.files.paths, memory);
  return {draw_digits(settings.train_samples, settings.drawing_seed, memory),
          draw_digits(settings.test_samples, ~settings.drawing_seed, memory), 10};
}

DataSets load_images(const DataSettings& settings, const Memory& memory) {
  TrainAndTest bytes = images_of(settings, memory.get());
  return {to_tensors(bytes.train, memory),
          to_tensors(bytes.test, memory),
          {1, bytes.train.rows, bytes.train.columns},
          bytes.classes};
}

DataSet to_tensors(CsvSet& set, TargetKind kind, const Memory& memory) {
  const auto table = [&](auto& values, at::ScalarType type) {
    return take(values, {set.rows, std::ssize(values) / set.rows}, type, memory);
  };
  DataSet tensors{table(set.inputs, at::kFloat), {}};
  tensors.targets = kind == TargetKind::classes  ? table(set.classes, at::kLong).squeeze(1)
                    : kind == TargetKind::values ? table(set.values, at::kFloat)
                                                 : tensors.inputs;
  return tensors;
}

DataSets load_csv(const FileSettings& files, const Memory& memory) {
  const CsvTable train = read_csv(files.paths[0], files.csv.format);
  std::optional<CsvTable> test;
  if (files.paths.size() > 1) test = read_csv(files.paths[1], files.csv.format);
  CsvSets sets = make_csv_sets(train, test, files.csv, files.targets, memory.get());
  const auto inputs = static_cast<std::int64_t>(sets.inputs.size());
  const auto outputs = files.targets == TargetKind::classes  ? sets.classes
                       : files.targets == TargetKind::values ? std::ssize(sets.targets)
                                                             : inputs;
  return {to_tensors(sets.train, files.targets, memory),
          to_tensors(sets.test, files.targets, memory),
          {inputs},
          outputs};
}

DataSets load_random(const DataSettings& settings, const Memory& memory) {
  const auto draw = [&](std::int64_t samples, std::uint64_t seed) {
    LabelledValues values = draw_values(samples, settings.features, settings.random_targets, seed,
                                        settings.drawing_seed, memory.get());
    return to_tensors(values, memory);
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
  return inputs.scalar_type() == at::kByte ? inputs.div(255) : inputs;
}

}  // namespace

DataSets load_data(const DataSettings& settings, const Memory& memory) {
  if (settings.source == DataSource::csv) return load_csv(settings.files, memory);
  return settings.source == DataSource::random ? load_random(settings, memory)
                                               : load_images(settings, memory);
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
