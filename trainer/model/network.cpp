// SPDX-License-Identifier: MIT
// Uses plain ATen operations: the training loop runs thousands of times a second.
#include "trainer/model/network.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "trainer/model/sync_batch_norm.h"

namespace dtool::trainer {
namespace {

// torch.nn.BatchNorm2d's.
constexpr double kMomentum = 0.1;
constexpr double kEpsilon = 1e-5;

}  // namespace

Network::Network(const ModelSettings& settings, const DataSets& data, Group group)
    : group_(std::move(group)),
      sync_batch_norm_(settings.sync_batch_norm),
      output_activation_(settings.output_activation) {
  Shape shape = data.shape;
  for (const Layer& each : settings.layers) {
    add(each, shape);
    shape = shape_after(each, shape);
  }
  const auto outputs = settings.target == Target::inputs ? count_values(data.shape) : data.outputs;
  add(parse_layer(fmt::format("linear {}", outputs)), shape);
}

void Network::add(const Layer& layer, const Shape& in) {
  Part part{layer, in, {}, {}, {}, {}};
  if (layer.kind == LayerKind::linear) {
    add_weights(part, fmt::format("fc{}", ++linears_));
  } else if (layer.kind == LayerKind::convolution) {
    add_weights(part, fmt::format("conv{}", ++convolutions_));
  } else if (layer.kind == LayerKind::batch_norm) {
    add_batch_norm(part, fmt::format("bn{}", ++batch_norms_));
  }
  parts_.push_back(std::move(part));
}

void Network::add_weights(Part& part, const std::string& name) {
  if (part.layer.kind == LayerKind::linear) {
    const torch::nn::Linear drawn(count_values(part.in), part.layer.width);
    part.weight = drawn->weight;
    part.bias = drawn->bias;
  } else {
    const torch::nn::Conv2d drawn(
        torch::nn::Conv2dOptions(part.in[0], part.layer.width, part.layer.kernel));
    part.weight = drawn->weight;
    part.bias = drawn->bias;
  }
  part.weight = part.weight.detach().to(group_.device).requires_grad_(true);
  part.bias = part.bias.detach().to(group_.device).requires_grad_(true);
  parameters_.push_back({name + ".weight", part.weight});
  parameters_.push_back({name + ".bias", part.bias});
}

void Network::add_batch_norm(Part& part, const std::string& name) {
  const auto options = at::TensorOptions(group_.device).dtype(at::kFloat);
  const auto channels = part.in[0];
  part.weight = at::ones({channels}, options).requires_grad_(true);
  part.bias = at::zeros({channels}, options).requires_grad_(true);
  part.running_mean = at::zeros({channels}, options);
  part.running_variance = at::ones({channels}, options);
  parameters_.push_back({name + ".weight", part.weight});
  parameters_.push_back({name + ".bias", part.bias});
  buffers_.push_back({name + ".running_mean", part.running_mean});
  buffers_.push_back({name + ".running_var", part.running_variance});
}

at::Tensor Network::forward(const at::Tensor& inputs) {
  at::Tensor values = inputs;
  const Shape& shape = parts_.front().in;
  const bool images = parts_.front().layer.kind != LayerKind::linear && shape.size() == 3;
  if (images) values = values.view({-1, shape[0], shape[1], shape[2]});
  for (const Part& each : parts_) values = apply(each, values);
  switch (output_activation_) {
    case Activation::relu:
      return at::relu(values);
    case Activation::sigmoid:
      return at::sigmoid(values);
    case Activation::none:
      break;
  }
  return values;
}

at::Tensor Network::apply(const Part& part, const at::Tensor& values) {
  const Layer& layer = part.layer;
  switch (layer.kind) {
    case LayerKind::linear:
      return at::linear(values.dim() > 2 ? values.flatten(1) : values, part.weight, part.bias);
    case LayerKind::convolution:
      return at::conv2d(values, part.weight, part.bias, layer.stride, layer.padding);
    case LayerKind::batch_norm:
      return normalise(part, values);
    case LayerKind::dropout:
      return at::dropout(values, layer.share, mode_ == Mode::training);
    case LayerKind::max_pool:
      return at::max_pool2d(values, layer.kernel, layer.stride);
    case LayerKind::average_pool:
      return at::avg_pool2d(values, layer.kernel, layer.stride);
    case LayerKind::relu:
      return at::relu(values);
    case LayerKind::gelu:
      return at::gelu(values);
    case LayerKind::tanh:
      return at::tanh(values);
    case LayerKind::sigmoid:
      break;
  }
  return at::sigmoid(values);
}

at::Tensor Network::normalise(const Part& part, const at::Tensor& values) {
  if (mode_ == Mode::training && sync_batch_norm_ == SyncBatchNorm::yes && group_.size > 1) {
    return sync_batch_norm(group_, values,
                           {part.weight, part.bias, part.running_mean, part.running_variance},
                           kMomentum, kEpsilon);
  }
  return at::batch_norm(values, part.weight, part.bias, part.running_mean, part.running_variance,
                        mode_ == Mode::training, kMomentum, kEpsilon, /*cudnn_enabled=*/true);
}

RandomNumbers Network::random_numbers() const {
  for (const Part& each : parts_) {
    if (each.layer.kind == LayerKind::dropout) return RandomNumbers::drawn;
  }
  return RandomNumbers::none;
}

}  // namespace dtool::trainer
