// SPDX-License-Identifier: MIT
// The built-in model: a chain of layers, and an output layer that fits the data.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/ranks/process_group.h"
#include "trainer/settings/model_settings.h"

namespace dtool::trainer {

/// How weights begin: as in PyTorch; or orthogonal, scaled by sqrt(2), between `skip` and `add` by
/// 1, with biases 0, as policies do.
enum class Beginning { as_in_pytorch, orthogonal };

/// Linear layers and convolutions are named fc1, fc2, ... and conv1, ..., batch norms bn1, ...,
/// group norms gn1, ....
class Network : public Model {
 public:
  Network(const ModelSettings& settings, const DataSets& data, Group group);
  /// The layers alone, for samples of shape `in`, with a prefix to their names.
  Network(const std::vector<Layer>& layers, const Shape& in, Beginning beginning,
          std::string prefix, Group group);

  at::Tensor forward(const at::Tensor& inputs) override;
  /// Maps `values` [batch, shape before the layer `begin`..] to those before the layer `end`.
  at::Tensor apply(const at::Tensor& values, std::size_t begin, std::size_t end) const;
  void set_mode(Mode mode) override { mode_ = mode; }
  std::vector<NamedTensor> parameters() const override { return parameters_; }
  std::vector<NamedTensor> buffers() const override { return buffers_; }
  RandomNumbers random_numbers() const override;

 private:
  /// A layer with its tensors; tensors that it does not need are undefined.
  struct Part {
    Layer layer;
    Shape in;
    at::Tensor weight;
    at::Tensor bias;
    at::Tensor running_mean;
    at::Tensor running_variance;
  };

  void add(const std::vector<Layer>& layers, const Shape& in);
  void add(const Layer& layer, const Shape& in);
  void add_weights(Part& part, const std::string& name);
  void add_norm(Part& part, const std::string& name);
  at::Tensor apply(const Part& part, const at::Tensor& values) const;
  at::Tensor normalise(const Part& part, const at::Tensor& values) const;

  Group group_;
  Beginning beginning_ = Beginning::as_in_pytorch;
  std::string prefix_;
  SyncBatchNorm sync_batch_norm_{};
  std::vector<Part> parts_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  Mode mode_ = Mode::training;
  std::map<LayerKind, int> counts_;  ///< the layers so far
};

// Batch norm over the batches of all ranks together: the result equals that of one rank with the
// whole batch.

/// Each is [channels].
struct BatchNormTensors {
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor running_mean;      ///< moved by `momentum` towards the batch's mean
  at::Tensor running_variance;  ///< moved by `momentum` towards the unbiased variance of the batch
};

/// Normalises `values` ([batch, channels, ...]) by mean and variance over all ranks, as
/// torch.nn.SyncBatchNorm does in training. It uses one all-gather forward and one all-reduce
/// backward, so every rank must call it equally often. Differentiable in `values`, weight and bias.
/// Ranks may hold different numbers of samples. It computes in float32 whatever the type of
/// `values`, and never waits for the device. Throws CollectiveFailed.
at::Tensor sync_batch_norm(const Group& group, const at::Tensor& values,
                           const BatchNormTensors& tensors, double momentum, double epsilon);

}  // namespace dtool::trainer
