// Keys of the archive: `model` (a nested archive, as torch::save makes), `adam_steps`,
// `adam_first_<i>`, `adam_second_<i>`, `epochs`, `steps`, `seed`, `world_size`, `random_state`.
#include "trainer/snapshot.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <torch/serialize/archive.h>
#include <sstream>

#include "trainer/usage_error.h"

namespace dtool::trainer {
namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

std::int64_t read_number(InputArchive& archive, const std::string& key) {
  c10::IValue value;
  archive.read(key, value);
  return value.toInt();
}

at::Tensor read_tensor(InputArchive& archive, const std::string& key) {
  at::Tensor tensor;
  archive.read(key, tensor, /*is_buffer=*/true);
  return tensor;
}

/// `fc1.weight` is the tensor `weight` of the nested archive `fc1`.
at::Tensor read_nested(InputArchive& archive, const std::string& name, bool is_buffer) {
  at::Tensor tensor;
  const auto dot = name.find('.');
  if (dot == std::string::npos) {
    archive.read(name, tensor, is_buffer);
    return tensor;
  }
  InputArchive nested;
  archive.read(name.substr(0, dot), nested);
  return read_nested(nested, name.substr(dot + 1), is_buffer);
}

void put_back(at::Tensor into, const at::Tensor& from, const std::string& key) {
  if (into.sizes() != from.sizes()) {
    throw UsageError(
        fmt::format("{} has shape [{}] in the checkpoint, [{}] in the experiment's model", key,
                    fmt::join(from.sizes(), ", "), fmt::join(into.sizes(), ", ")));
  }
  into.copy_(from);
}

Progress read_everything(InputArchive& archive, torch::nn::Module& model, Adam& optimizer) {
  const c10::NoGradGuard no_gradients;
  InputArchive saved_model;
  archive.read("model", saved_model);
  for (auto& each : model.named_parameters()) {
    put_back(each.value(), read_nested(saved_model, each.key(), false), each.key());
  }
  for (auto& each : model.named_buffers()) {
    put_back(each.value(), read_nested(saved_model, each.key(), true), each.key());
  }
  Adam::State& state = optimizer.state();
  state.steps = read_number(archive, "adam_steps");
  for (std::size_t i = 0; i < state.first_moments.size(); ++i) {
    const auto first = fmt::format("adam_first_{}", i);
    const auto second = fmt::format("adam_second_{}", i);
    put_back(state.first_moments[i], read_tensor(archive, first), first);
    put_back(state.second_moments[i], read_tensor(archive, second), second);
  }
  auto generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(read_tensor(archive, "random_state"));
  return {read_number(archive, "epochs"), read_number(archive, "steps"),
          static_cast<std::uint64_t>(read_number(archive, "seed")),
          static_cast<int>(read_number(archive, "world_size"))};
}

}  // namespace

std::string pack(const torch::nn::Module& model, Adam& optimizer, const Progress& progress) {
  OutputArchive archive;
  OutputArchive saved_model(archive.compilation_unit());
  model.save(saved_model);
  archive.write("model", saved_model);
  const Adam::State& state = optimizer.state();
  archive.write("adam_steps", c10::IValue(state.steps));
  for (std::size_t i = 0; i < state.first_moments.size(); ++i) {
    archive.write(fmt::format("adam_first_{}", i), state.first_moments[i], /*is_buffer=*/true);
    archive.write(fmt::format("adam_second_{}", i), state.second_moments[i], /*is_buffer=*/true);
  }
  archive.write("epochs", c10::IValue(progress.epochs));
  archive.write("steps", c10::IValue(progress.steps));
  archive.write("seed", c10::IValue(static_cast<std::int64_t>(progress.seed)));
  archive.write("world_size", c10::IValue(std::int64_t{progress.world_size}));
  archive.write("random_state", at::detail::getDefaultCPUGenerator().get_state(),
                /*is_buffer=*/true);
  std::ostringstream bytes;
  archive.save_to(bytes);
  return std::move(bytes).str();
}

Progress unpack(const std::string& bytes, const std::string& name, torch::nn::Module& model,
                Adam& optimizer) {
  InputArchive archive;
  try {
    archive.load_from(bytes.data(), bytes.size(), at::Device(at::kCPU));
    return read_everything(archive, model, optimizer);
  } catch (const UsageError& mistake) {
    throw UsageError(fmt::format("{}: {}", name, mistake.what()));
  } catch (const c10::Error& problem) {
    const std::string text = problem.what_without_backtrace();
    throw UsageError(fmt::format("{} is no checkpoint of this model: {}", name,
                                 text.substr(0, text.find('\n'))));
  }
}

}  // namespace dtool::trainer
