// SPDX-License-Identifier: MIT
// The only file that includes TorchScript's headers, which take seconds to compile.
#include "trainer/model/script_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/script.h>

#include <filesystem>
#include <sstream>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

constexpr const char* kHowToExport = "export it with torch.jit.script(model).save(\"model.pt\")";

torch::jit::Module load(const std::string& file, at::Device device) {
  if (!std::filesystem::is_regular_file(file)) {
    throw UsageError(fmt::format("model.file: no file at {}", file), kHowToExport);
  }
  try {
    return torch::jit::load(file, device);
  } catch (const std::exception& problem) {
    throw UsageError(
        fmt::format("model.file: {} is no TorchScript module: {}", file, first_line(problem)),
        kHowToExport);
  }
}

}  // namespace

ScriptModel::ScriptModel(const ModelSettings& settings, const DataSets& data, at::Device device)
    : module_(std::make_unique<torch::jit::Module>(load(settings.file, device))) {
  const Shape& shape = settings.input_shape.empty() ? data.shape : settings.input_shape;
  if (count_values(shape) != count_values(data.shape)) {
    throw UsageError(fmt::format("model.input_shape [{}] holds {} values, a sample has {}",
                                 fmt::join(shape, ", "), count_values(shape),
                                 count_values(data.shape)));
  }
  shape_ = {-1};
  shape_.insert(shape_.end(), shape.begin(), shape.end());
  if (parameters().empty()) {
    throw UsageError(fmt::format("model.file: {} has no parameters to train", settings.file));
  }
}

ScriptModel::~ScriptModel() = default;

at::Tensor ScriptModel::forward(const at::Tensor& inputs) {
  const auto output = module_->forward({inputs.view(shape_)});
  if (!output.isTensor()) {
    throw UsageError(
        fmt::format("the model's forward returns {}, not a tensor", output.type()->repr_str()));
  }
  return output.toTensor();
}

void ScriptModel::set_mode(Mode mode) {
  module_->train(mode == Mode::training);
}

std::vector<NamedTensor> ScriptModel::parameters() const {
  std::vector<NamedTensor> named;
  for (const auto& each : module_->named_parameters()) {
    if (each.value.requires_grad()) named.push_back({each.name, each.value});
  }
  return named;
}

std::vector<NamedTensor> ScriptModel::buffers() const {
  std::vector<NamedTensor> named;
  for (const auto& each : module_->named_buffers()) named.push_back({each.name, each.value});
  return named;
}

std::optional<std::string> ScriptModel::exported() const {
  std::ostringstream bytes;
  module_->save(bytes);
  return std::move(bytes).str();
}

}  // namespace dtool::trainer
