// SPDX-License-Identifier: MIT
// Keys of the archive: `model` (nested archives, one per part of a parameter's name),
// `model_tensors` (their number), `optimizer`, `optimizer_steps`, `optimizer_first_<i>`,
// `optimizer_second_<i>`, `others` (a nested archive), and the fields of Progress.
#include "trainer/training/snapshot.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <torch/serialize/archive.h>
#include <map>
#include <sstream>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

const char* name_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::adam:
      break;
  }
  return "adam";
}

std::vector<NamedTensor> all_tensors(const Weights& model) {
  auto tensors = model.parameters();
  const auto buffers = model.buffers();
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  return tensors;
}

at::Tensor copy_of(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

std::vector<NamedTensor> copies_of(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> copies;
  for (const NamedTensor& each : tensors) copies.push_back({each.name, copy_of(each.tensor)});
  return copies;
}

/// `fc1.weight` becomes the tensor `weight` of the nested archive `fc1`.
void write_nested(OutputArchive& archive, const std::vector<NamedTensor>& tensors) {
  std::map<std::string, std::vector<NamedTensor>> parts;
  for (const NamedTensor& each : tensors) {
    const auto dot = each.name.find('.');
    if (dot == std::string::npos) {
      archive.write(each.name, each.tensor.detach(), /*is_buffer=*/true);
    } else {
      parts[each.name.substr(0, dot)].push_back({each.name.substr(dot + 1), each.tensor});
    }
  }
  for (const auto& [name, its_tensors] : parts) {
    OutputArchive nested(archive.compilation_unit());
    write_nested(nested, its_tensors);
    archive.write(name, nested);
  }
}

at::Tensor read_tensor(InputArchive& archive, const std::string& key) {
  at::Tensor tensor;
  archive.read(key, tensor, /*is_buffer=*/true);
  return tensor;
}

at::Tensor read_nested(InputArchive& archive, const std::string& name) {
  const auto dot = name.find('.');
  if (dot == std::string::npos) return read_tensor(archive, name);
  InputArchive nested;
  archive.read(name.substr(0, dot), nested);
  return read_nested(nested, name.substr(dot + 1));
}

c10::IValue read_value(InputArchive& archive, const std::string& key) {
  c10::IValue value;
  archive.read(key, value);
  return value;
}

std::int64_t read_number(InputArchive& archive, const std::string& key) {
  return read_value(archive, key).toInt();
}

/// 0 if an older checkpoint does not have the key.
std::int64_t read_number_if_there(InputArchive& archive, const std::string& key) {
  c10::IValue value;
  return archive.try_read(key, value) ? value.toInt() : 0;
}

void put_back(at::Tensor into, const at::Tensor& from, const std::string& key) {
  if (into.sizes() != from.sizes()) {
    throw UsageError(
        fmt::format("{} has shape [{}] in the checkpoint, [{}] in the experiment's model", key,
                    fmt::join(from.sizes(), ", "), fmt::join(into.sizes(), ", ")));
  }
  into.copy_(from);
}

void read_model(InputArchive& archive, const Weights& model) {
  const auto tensors = all_tensors(model);
  const auto saved = read_number(archive, "model_tensors");
  if (saved != static_cast<std::int64_t>(tensors.size())) {
    throw UsageError(fmt::format("it holds a model of {} tensors, the experiment's has {}", saved,
                                 tensors.size()));
  }
  InputArchive saved_model;
  archive.read("model", saved_model);
  for (const NamedTensor& each : tensors) {
    put_back(each.tensor.detach(), read_nested(saved_model, each.name), each.name);
  }
}

void read_optimizer(InputArchive& archive, Optimizer& optimizer) {
  const auto kind = read_value(archive, "optimizer").toStringRef();
  if (kind != name_of(optimizer.kind())) {
    throw UsageError(fmt::format("it holds the state of {}, the experiment's optimizer is {}", kind,
                                 name_of(optimizer.kind())));
  }
  Optimizer::State& state = optimizer.state();
  state.steps = read_number(archive, "optimizer_steps");
  for (std::size_t i = 0; i < state.first.size(); ++i) {
    const auto key = fmt::format("optimizer_first_{}", i);
    put_back(state.first[i], read_tensor(archive, key), key);
  }
  for (std::size_t i = 0; i < state.second.size(); ++i) {
    const auto key = fmt::format("optimizer_second_{}", i);
    put_back(state.second[i], read_tensor(archive, key), key);
  }
}

struct WholeNumber {
  const char* key;
  std::int64_t Progress::*field;
};

constexpr WholeNumber kWholeNumbers[] = {
    {"epochs", &Progress::epochs},
    {"samples", &Progress::samples},
    {"steps", &Progress::steps},
    {"rollouts", &Progress::rollouts},
    {"stage", &Progress::stage},
    {"stage_epochs", &Progress::stage_epochs},
    {"stage_steps", &Progress::stage_steps},
    {"training_samples", &Progress::training_samples},
};

Progress read_progress(InputArchive& archive) {
  Progress progress;
  for (const auto& [key, field] : kWholeNumbers) {
    progress.*field = read_number_if_there(archive, key);
  }
  progress.seed = static_cast<std::uint64_t>(read_number(archive, "seed"));
  progress.world_size = static_cast<int>(read_number(archive, "world_size"));
  progress.best_score = read_value(archive, "best_score").toDouble();
  return progress;
}

/// None in a checkpoint of a workload that has none.
std::vector<NamedTensor> read_others(InputArchive& archive) {
  InputArchive saved;
  if (!archive.try_read("others", saved)) return {};
  std::vector<NamedTensor> others;
  for (const auto& name : saved.keys()) others.push_back({name, read_tensor(saved, name)});
  return others;
}

/// The result of `read` for the archive in `bytes`, or a UsageError that names the archive.
template <class Read>
auto read_archive(const std::string& bytes, const std::string& name, Read read) {
  const c10::NoGradGuard no_gradients;
  InputArchive archive;
  try {
    archive.load_from(bytes.data(), bytes.size(), at::Device(at::kCPU));
    return read(archive);
  } catch (const UsageError& mistake) {
    throw UsageError(fmt::format("{} does not fit: {}", name, mistake.what()));
  } catch (const c10::Error& problem) {
    throw UsageError(
        fmt::format("{} is no checkpoint of this model: {}", name, first_line(problem)));
  }
}

}  // namespace

TrainedState copy_state(const Weights& model, Optimizer& optimizer) {
  TrainedState trained{copies_of(all_tensors(model)), optimizer.kind(), {}};
  const Optimizer::State& state = optimizer.state();
  trained.optimizer.steps = state.steps;
  for (const auto& each : state.first) trained.optimizer.first.push_back(copy_of(each));
  for (const auto& each : state.second) trained.optimizer.second.push_back(copy_of(each));
  return trained;
}

Snapshot take_snapshot(std::shared_ptr<const TrainedState> trained, const Progress& progress,
                       const std::vector<NamedTensor>& others) {
  return {std::move(trained), progress, copies_of(others)};
}

std::string pack(const Snapshot& snapshot) {
  OutputArchive archive;
  const auto& [tensors, kind, state] = *snapshot.trained;
  OutputArchive saved_model(archive.compilation_unit());
  write_nested(saved_model, tensors);
  archive.write("model", saved_model);
  archive.write("model_tensors", c10::IValue(static_cast<std::int64_t>(tensors.size())));

  archive.write("optimizer", c10::IValue(std::string(name_of(kind))));
  archive.write("optimizer_steps", c10::IValue(state.steps));
  for (std::size_t i = 0; i < state.first.size(); ++i) {
    archive.write(fmt::format("optimizer_first_{}", i), state.first[i], /*is_buffer=*/true);
  }
  for (std::size_t i = 0; i < state.second.size(); ++i) {
    archive.write(fmt::format("optimizer_second_{}", i), state.second[i], /*is_buffer=*/true);
  }

  if (!snapshot.others.empty()) {
    OutputArchive saved_others(archive.compilation_unit());
    write_nested(saved_others, snapshot.others);
    archive.write("others", saved_others);
  }

  const Progress& progress = snapshot.progress;
  for (const auto& [key, field] : kWholeNumbers) archive.write(key, c10::IValue(progress.*field));
  archive.write("seed", c10::IValue(static_cast<std::int64_t>(progress.seed)));
  archive.write("world_size", c10::IValue(std::int64_t{progress.world_size}));
  archive.write("best_score", c10::IValue(progress.best_score));
  std::ostringstream bytes;
  archive.save_to(bytes);
  return std::move(bytes).str();
}

Unpacked unpack(const std::string& bytes, const std::string& name, Weights& model,
                Optimizer& optimizer) {
  return read_archive(bytes, name, [&](InputArchive& archive) {
    read_model(archive, model);
    read_optimizer(archive, optimizer);
    return Unpacked{read_progress(archive), read_others(archive)};
  });
}

Progress unpack_model(const std::string& bytes, const std::string& name, Weights& model) {
  return read_archive(bytes, name, [&](InputArchive& archive) {
    read_model(archive, model);
    return read_progress(archive);
  });
}

}  // namespace dtool::trainer
