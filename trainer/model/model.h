// SPDX-License-Identifier: MIT
// The training loop's view of a model. Two kinds learn from samples: the built-in network and an
// exported TorchScript module.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "trainer/data/data_set.h"
#include "trainer/ranks/process_group.h"
#include "trainer/settings/train_settings.h"

namespace dtool::trainer {

struct NamedTensor {
  std::string name;  ///< such as `fc1.weight`
  at::Tensor tensor;
};

enum class Mode { training, evaluation };

enum class RandomNumbers { none, drawn };

/// The learned values: what a checkpoint keeps of any kind of model.
struct Weights {
  virtual ~Weights() = default;

  /// Leaf tensors that require gradients, always in the same order.
  virtual std::vector<NamedTensor> parameters() const = 0;
  /// Other values that training changes, such as the running averages of batch norm.
  virtual std::vector<NamedTensor> buffers() const = 0;

  /// The content of a file for PyTorch: for torch.load, a dict of these tensors by their names; a
  /// TorchScript module's for torch.jit.load.
  virtual std::string exported() const;
};

/// A model that learns from samples.
struct Model : Weights {
  /// Maps [batch, values] float to [batch, outputs].
  virtual at::Tensor forward(const at::Tensor& inputs) = 0;
  virtual void set_mode(Mode mode) = 0;

  /// Whether `forward` draws random numbers in training, as dropout does.
  virtual RandomNumbers random_numbers() const = 0;
};

// The precision of the forward pass: float32 like the parameters, or bfloat16 where PyTorch's
// autocast considers it safe.

/// While it lives, this thread's operations on `device` use `precision`. With bfloat16, matrix
/// products and convolutions get bfloat16 copies of their inputs, while sums, losses and the
/// parameters stay float32, as under torch.autocast. The backward pass follows the forward pass's
/// types and runs outside.
class Autocast {
 public:
  Autocast(Precision precision, at::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool active_;
  bool was_enabled_ = false;
  at::DeviceType device_type_;
};

/// The tensors without their names.
std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named);

/// Makes the experiment's model for the data, on the group's device. Its weights are drawn from the
/// default generator or read from the exported module. Throws UsageError if the layers do not fit
/// the samples, or the file is not a TorchScript module.
std::unique_ptr<Model> make_model(const ModelSettings& settings, const DataSets& data,
                                  const Group& group);

}  // namespace dtool::trainer
