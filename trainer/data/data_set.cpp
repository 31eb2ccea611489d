// SPDX-License-Identifier: MIT
// Converts files to tensors once, so that a step only gathers rows. Images stay bytes until then,
// which takes a quarter of the memory.
#include "trainer/data/data_set.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "trainer/data/csv.h"
#include "trainer/data/drawn_data.h"
#include "trainer/data/idx.h"
#include "trainer/data/sampler.h"

namespace dtool::trainer {

namespace {

/// A tensor that takes the numbers over: for data that fills half of the memory a copy, however
/// short-lived, would be too much.
template <class Value>
at::Tensor take(std::pmr::vector<Value>& values, at::IntArrayRef shape, at::ScalarType type,
                const SampleMemory& memory) {
  struct Kept {
    SampleMemory memory;  // freed after the values
    std::pmr::vector<Value> values;
  };
  const auto kept = std::make_shared<Kept>(memory, std::move(values));
  return at::from_blob(
      kept->values.data(), shape, [kept](void*) {}, at::TensorOptions(type));
}

DataSet to_tensors(LabelledImages& bytes, const SampleMemory& memory) {
  std::pmr::vector<std::int64_t> labels(bytes.labels.begin(), bytes.labels.end(), memory.get());
  return {take(bytes.images, {bytes.count, bytes.pixels}, at::kByte, memory),
          take(labels, {bytes.count}, at::kLong, memory)};
}

DataSet to_tensors(LabelledValues& values, const SampleMemory& memory) {
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

DataSets load_images(const DataSettings& settings, const SampleMemory& memory) {
  TrainAndTest bytes = images_of(settings, memory.get());
  return {to_tensors(bytes.train, memory),
          to_tensors(bytes.test, memory),
          {1, bytes.train.rows, bytes.train.columns},
          bytes.classes};
}

DataSet to_tensors(CsvSet& set, TargetKind kind, const SampleMemory& memory) {
  const auto table = [&](auto& values, at::ScalarType type) {
    return take(values, {set.rows, std::ssize(values) / set.rows}, type, memory);
  };
  DataSet tensors{table(set.inputs, at::kFloat), {}};
  tensors.targets = kind == TargetKind::classes  ? table(set.classes, at::kLong).squeeze(1)
                    : kind == TargetKind::values ? table(set.values, at::kFloat)
                                                 : tensors.inputs;
  return tensors;
}

DataSets load_csv(const FileSettings& files, const SampleMemory& memory) {
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

DataSets load_random(const DataSettings& settings, const SampleMemory& memory) {
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

at::Tensor empty_in(const SampleMemory& memory, at::IntArrayRef shape, at::ScalarType type) {
  const auto bytes =
      static_cast<std::size_t>(c10::multiply_integers(shape)) * at::elementSize(type);
  return at::from_blob(
      memory->allocate(bytes), shape,
      [memory, bytes](void* values) { memory->deallocate(values, bytes); },
      at::TensorOptions(type));
}

DataSets load_data(const DataSettings& settings, const SampleMemory& memory) {
  if (settings.source == DataSource::csv) return load_csv(settings.files, memory);
  if (settings.source == DataSource::npy || settings.source == DataSource::python) {
    return load_arrays(settings, memory);
  }
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

// One producer, one consumer, a bounded queue.

Batch DrawnBatch::from(const DataSet& set) const {
  return tensors.size() == 1 ? gather(set, tensors[0]) : Batch{tensors[0], tensors[1]};
}

BatchLoader::BatchLoader(const DataSet& set, std::vector<std::int64_t> order,
                         std::int64_t batch_size, std::int64_t ahead)
    : set_(set),
      order_(std::move(order)),
      batch_size_(static_cast<std::size_t>(batch_size)),
      ahead_(set.inputs.is_cpu() ? static_cast<std::size_t>(ahead) : 0) {
  if (set.inputs.is_cuda()) {
    // Once an epoch: with each batch's numbers the CPU would wait for the GPU.
    order_on_gpu_ = at::tensor(order_, at::kLong).to(set.inputs.device());
  }
  if (ahead_ > 0) thread_ = std::thread([this] { gather_ahead(); });
}

BatchLoader::~BatchLoader() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<DrawnBatch> BatchLoader::next() {
  if (ahead_ == 0) return draw_next();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || done_; });
  if (ready_.empty()) {
    if (error_) std::rethrow_exception(error_);
    return std::nullopt;
  }
  DrawnBatch batch = std::move(ready_.front());
  ready_.pop_front();
  // The thread is woken once half the queue is free, not for each batch.
  if (ready_.size() <= ahead_ / 2) changed_.notify_all();
  return batch;
}

std::optional<DrawnBatch> BatchLoader::draw_next() {
  if (begin_ == order_.size()) return std::nullopt;
  const auto size = std::min(batch_size_, order_.size() - begin_);
  const auto begin = std::exchange(begin_, begin_ + size);
  if (order_on_gpu_.defined()) {
    return DrawnBatch{{order_on_gpu_.narrow(0, static_cast<std::int64_t>(begin),
                                            static_cast<std::int64_t>(size))}};
  }
  Batch batch = gather(set_, std::span<const std::int64_t>(order_.data() + begin, size));
  return DrawnBatch{{std::move(batch.inputs), std::move(batch.targets)}};
}

void BatchLoader::gather_ahead() {
  try {
    for (;;) {
      auto batch = draw_next();
      std::unique_lock lock(mutex_);
      if (batch) {
        changed_.wait(lock, [this] { return ready_.size() < ahead_ || stopped_; });
        ready_.push_back(std::move(*batch));
      } else {
        done_ = true;
      }
      if (ready_.size() == 1 || done_) changed_.notify_all();
      if (done_ || stopped_) return;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    done_ = true;
    changed_.notify_all();
  }
}

}  // namespace dtool::trainer
