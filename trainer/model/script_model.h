// SPDX-License-Identifier: MIT
// A module that the user exported from Python with torch.jit.script(model).save(file).
#pragma once

#include <memory>

#include "trainer/model/model.h"

namespace torch::jit {
struct Module;
}

namespace dtool::trainer {

/// Trained unchanged: with its own layers, modes and buffers.
class ScriptModel : public Model {
 public:
  /// Throws UsageError if the file is missing or is not such a module, or if the input shape and
  /// the data's samples have different numbers of values.
  ScriptModel(const ModelSettings& settings, const DataSets& data, at::Device device);
  ~ScriptModel() override;

  at::Tensor forward(const at::Tensor& inputs) override;
  void set_mode(Mode mode) override;
  std::vector<NamedTensor> parameters() const override;
  std::vector<NamedTensor> buffers() const override;
  RandomNumbers random_numbers() const override { return RandomNumbers::drawn; }  // it may
  std::optional<std::string> exported() const override;

 private:
  std::unique_ptr<torch::jit::Module> module_;
  Shape shape_;  ///< [-1, one sample's dimensions]
};

}  // namespace dtool::trainer
