// SPDX-License-Identifier: MIT
// Chooses between the two kinds of models. The only file that includes TorchScript's headers, which
// take seconds to compile.
#include "trainer/model/model.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/script.h>
#include <torch/version.h>

#include <filesystem>
#include <memory>
#include <sstream>

#include "trainer/model/network.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

namespace {

/// The code of an exported module is its own: its batch norms cannot be made to look at other
/// ranks.
void tell_batch_norm_of_each_rank(const Model& module) {
  for (const auto& [name, tensor] : module.buffers()) {
    if (!name.ends_with("running_mean")) continue;
    fmt::print(
        "note: batch norm in the module ({}) is over each rank's own batch, so several ranks train "
        "otherwise than one; a built-in model's is over all ranks\n",
        name);
    return;
  }
}

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

/// A module that the user exported from Python with torch.jit.script(model).save(file). Trained
/// unchanged: with its own layers, modes and buffers.
class ScriptModel : public Model {
 public:
  /// Throws UsageError if the file is missing or is not such a module, or if the input shape and
  /// the data's samples have different numbers of values.
  ScriptModel(const ModelSettings& settings, const DataSets& data, at::Device device)
      : module_(load(settings.file, device)) {
    const Shape& shape = settings.input_shape.empty() ? data.shape : settings.input_shape;
    if (count_values(shape) != count_values(data.shape)) {
      throw UsageError(fmt::format("model.input_shape [{}] holds {} values, a sample has {}",
                                   fmt::join(shape, ", "), count_values(shape),
                                   count_values(data.shape)));
    }
    shape_.insert(shape_.end(), shape.begin(), shape.end());
    if (parameters().empty()) {
      throw UsageError(fmt::format("model.file: {} has no parameters to train", settings.file));
    }
  }

  at::Tensor forward(const at::Tensor& inputs) override {
    const auto output = module_.forward({inputs.view(shape_)});
    if (!output.isTensor()) {
      throw UsageError(
          fmt::format("the model's forward returns {}, not a tensor", output.type()->repr_str()));
    }
    return output.toTensor();
  }

  void set_mode(Mode mode) override { module_.train(mode == Mode::training); }

  std::vector<NamedTensor> parameters() const override {
    std::vector<NamedTensor> named;
    for (const auto& each : module_.named_parameters()) {
      if (each.value.requires_grad()) named.push_back({each.name, each.value});
    }
    return named;
  }

  std::vector<NamedTensor> buffers() const override {
    std::vector<NamedTensor> named;
    for (const auto& each : module_.named_buffers()) named.push_back({each.name, each.value});
    return named;
  }

  RandomNumbers random_numbers() const override { return RandomNumbers::drawn; }  // it may

  std::string exported() const override {
    std::ostringstream bytes;
    module_.save(bytes);
    return std::move(bytes).str();
  }

 private:
  torch::jit::Module module_;
  Shape shape_{-1};  ///< [-1, one sample's dimensions]
};

}  // namespace

/// torch::pickle_save does the same, but with types that torch.load refuses, since reading them
/// runs code.
std::string Weights::exported() const {
  c10::Dict<std::string, at::Tensor> named;
  for (const auto& tensors : {parameters(), buffers()}) {
    for (const NamedTensor& each : tensors) named.insert(each.name, each.tensor.detach().cpu());
  }
  std::string words, bytes;
  torch::jit::Pickler pickler([&](const char* some, std::size_t size) { words.append(some, size); },
                              nullptr, nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(named);
  pickler.stop();
  caffe2::serialize::PyTorchStreamWriter file([&](const void* some, std::size_t size) {
    bytes.append(static_cast<const char*>(some), size);
    return size;
  });
  torch::jit::writeArchiveAndTensors("data", words.data(), words.size(), pickler.tensorData(),
                                     file);
  file.writeEndOfFile();
  return bytes;
}

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(named.size());
  for (const NamedTensor& each : named) tensors.push_back(each.tensor);
  return tensors;
}

std::unique_ptr<Model> make_model(const ModelSettings& settings, const DataSets& data,
                                  const Group& group) {
  if (!settings.file.empty()) {
    auto module = std::make_unique<ScriptModel>(settings, data, group.device);
    if (group.size > 1 && group.rank == 0) tell_batch_norm_of_each_rank(*module);
    return module;
  }
  return std::make_unique<Network>(settings, data, group);
}

namespace {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
bool is_enabled(at::DeviceType device_type) {
  return at::autocast::is_autocast_enabled(device_type);
}

void enable_bfloat16(at::DeviceType device_type, bool enabled) {
  at::autocast::set_autocast_enabled(device_type, enabled);
  at::autocast::set_autocast_dtype(device_type, at::kBFloat16);
}
#else
// Before 2.4 each kind of device has functions of its own.
bool is_enabled(at::DeviceType device_type) {
  return device_type == at::kCUDA ? at::autocast::is_enabled() : at::autocast::is_cpu_enabled();
}

void enable_bfloat16(at::DeviceType device_type, bool enabled) {
  if (device_type == at::kCUDA) {
    at::autocast::set_enabled(enabled);
    at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
  } else {
    at::autocast::set_cpu_enabled(enabled);
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
  }
}
#endif

}  // namespace

Autocast::Autocast(Precision precision, at::Device device)
    : active_(precision == Precision::bfloat16), device_type_(device.type()) {
  if (!active_) return;
  was_enabled_ = is_enabled(device_type_);
  enable_bfloat16(device_type_, true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!active_) return;
  // The copies of the parameters are of no use after the next step.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  enable_bfloat16(device_type_, was_enabled_);
}

}  // namespace dtool::trainer
