// A module that the user exported from Python with torch.jit.script(model).save(file).
#pragma once

#include <memory>

#include "trainer/model/model.h"

namespace torch::jit {
struct Module;
}

namespace dtool::trainer {

/// Trained as it is: its own layers, modes and buffers.
class ScriptModel : public Model {
 public:
  /// Throws UsageError when the file is missing or is no such module, or when the input shape holds
  /// another number of values than the data's samples.
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
