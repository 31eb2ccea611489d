// SPDX-License-Identifier: MIT
// Uses plain ATen operations: the training loop runs thousands of times a second.
#include "trainer/model/network.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <map>
#include <utility>

namespace dtool::trainer {

namespace {

// torch.nn.BatchNorm2d's.
constexpr double kMomentum = 0.1;
constexpr double kEpsilon = 1e-5;

}  // namespace

Network::Network(const ModelSettings& settings, const DataSets& data, Group group)
    : group_(std::move(group)), sync_batch_norm_(settings.sync_batch_norm) {
  const auto outputs = settings.target == Target::inputs ? count_values(data.shape) : data.outputs;
  std::vector<Layer> layers = settings.layers;
  layers.push_back(parse_layer(fmt::format("linear {}", outputs)));
  if (settings.output_activation != Activation::none) {
    const bool is_relu = settings.output_activation == Activation::relu;
    layers.push_back(parse_layer(is_relu ? "relu" : "sigmoid"));
  }
  add(layers, data.shape);
}

Network::Network(const std::vector<Layer>& layers, const Shape& in, Beginning beginning,
                 std::string prefix, Group group)
    : group_(std::move(group)), beginning_(beginning), prefix_(std::move(prefix)) {
  add(layers, in);
}

void Network::add(const std::vector<Layer>& layers, const Shape& in) {
  const std::vector<Shape> shapes = shapes_along(layers, in);
  for (std::size_t i = 0; i < layers.size(); ++i) add(layers[i], shapes[i]);
}

void Network::add(const Layer& layer, const Shape& in) {
  static const std::map<LayerKind, const char*> kNames = {{LayerKind::linear, "fc"},
                                                          {LayerKind::convolution, "conv"},
                                                          {LayerKind::batch_norm, "bn"},
                                                          {LayerKind::group_norm, "gn"}};
  Part part{layer, in, {}, {}, {}, {}};
  const int number = ++counts_[layer.kind];
  if (const auto found = kNames.find(layer.kind); found != kNames.end()) {
    const auto name = fmt::format("{}{}{}", prefix_, found->second, number);
    if (layer.kind == LayerKind::batch_norm || layer.kind == LayerKind::group_norm) {
      add_norm(part, name);
    } else {
      add_weights(part, name);
    }
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
  if (beginning_ == Beginning::orthogonal) {
    const bool is_skipped = counts_[LayerKind::skip] > counts_[LayerKind::add];
    torch::nn::init::orthogonal_(part.weight, is_skipped ? 1 : std::sqrt(2.0));
    torch::nn::init::zeros_(part.bias);
  }
  part.weight = part.weight.detach().to(group_.device).requires_grad_(true);
  part.bias = part.bias.detach().to(group_.device).requires_grad_(true);
  parameters_.push_back({name + ".weight", part.weight});
  parameters_.push_back({name + ".bias", part.bias});
}

void Network::add_norm(Part& part, const std::string& name) {
  const auto options = at::TensorOptions(group_.device).dtype(at::kFloat);
  const auto channels = part.in[0];
  part.weight = at::ones({channels}, options).requires_grad_(true);
  part.bias = at::zeros({channels}, options).requires_grad_(true);
  parameters_.push_back({name + ".weight", part.weight});
  parameters_.push_back({name + ".bias", part.bias});
  if (part.layer.kind == LayerKind::group_norm) return;
  part.running_mean = at::zeros({channels}, options);
  part.running_variance = at::ones({channels}, options);
  buffers_.push_back({name + ".running_mean", part.running_mean});
  buffers_.push_back({name + ".running_var", part.running_variance});
}

at::Tensor Network::forward(const at::Tensor& inputs) {
  at::Tensor values = inputs;
  const Shape& shape = parts_.front().in;
  const bool images = parts_.front().layer.kind != LayerKind::linear && shape.size() == 3;
  if (images) values = values.view({-1, shape[0], shape[1], shape[2]});
  return apply(values, 0, parts_.size());
}

at::Tensor Network::apply(const at::Tensor& values, std::size_t begin, std::size_t end) const {
  at::Tensor now = values;
  std::vector<at::Tensor> kept;
  for (std::size_t i = begin; i < end; ++i) {
    const Part& part = parts_[i];
    if (part.layer.kind == LayerKind::skip) {
      kept.push_back(now);
    } else if (part.layer.kind == LayerKind::swap) {
      std::swap(now, kept.back());
    } else if (part.layer.kind == LayerKind::add) {
      now = now + kept.back();
      kept.pop_back();
    } else {
      now = apply(part, now);
    }
  }
  return now;
}

/// A layer that looks at no kept values.
at::Tensor Network::apply(const Part& part, const at::Tensor& values) const {
  const Layer& layer = part.layer;
  switch (layer.kind) {
    case LayerKind::linear:
      return at::linear(values.dim() > 2 ? values.flatten(1) : values, part.weight, part.bias);
    case LayerKind::convolution:
      return at::conv2d(values, part.weight, part.bias, layer.stride, layer.padding);
    case LayerKind::batch_norm:
      return normalise(part, values);
    case LayerKind::group_norm:
      // In float32, as batch norm: LibTorch 1.13 has no other for such weights on CPUs.
      return at::group_norm(values.to(part.weight.scalar_type()), layer.groups, part.weight,
                            part.bias, kEpsilon);
    case LayerKind::dropout:
      return at::dropout(values, layer.share, mode_ == Mode::training);
    case LayerKind::max_pool:
      return at::max_pool2d(values, layer.kernel, layer.stride, layer.padding);
    case LayerKind::average_pool:
      return at::avg_pool2d(values, layer.kernel, layer.stride);
    case LayerKind::relu:
      return at::relu(values);
    case LayerKind::gelu:
      return at::gelu(values);
    case LayerKind::tanh:
      return at::tanh(values);
    case LayerKind::sigmoid:
      return at::sigmoid(values);
    default:
      break;
  }
  return values;
}

at::Tensor Network::normalise(const Part& part, const at::Tensor& values) const {
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

// Ranks exchange count, mean and sum of squared deviations, which can be combined without
// cancellation (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
// sample variances", 1979).

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// All dimensions but the channels'.
std::vector<std::int64_t> other_dimensions(const at::Tensor& values) {
  std::vector<std::int64_t> dimensions = {0};
  for (std::int64_t i = 2; i < values.dim(); ++i) dimensions.push_back(i);
  return dimensions;
}

/// [channels] so that it spreads over [batch, channels, ...].
at::Tensor spread(const at::Tensor& channels, const at::Tensor& values) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(values.dim()), 1);
  shape[1] = -1;
  return channels.view(shape);
}

/// On the device: reading one would wait for it, which a recorded step must not. In float32 at
/// least, since bfloat16 counts no further than 256.
struct Statistics {
  at::Tensor count;     ///< values a channel, over all ranks: [1]
  at::Tensor mean;      ///< [channels]
  at::Tensor variance;  ///< [channels], biased
};

/// [ranks, 2 channels + 1]: what each rank passed.
at::Tensor gather_from_ranks(const Group& group, const at::Tensor& mine) {
  std::vector<at::Tensor> inputs = {mine};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int i = 0; i < group.size; ++i) outputs[0].push_back(at::empty_like(mine));
  collectively([&] { group.process_group->allgather(outputs, inputs)->wait(); });
  return at::stack(outputs[0]);
}

at::Tensor widened(const at::Tensor& values) {
  return values.to(c10::promoteTypes(values.scalar_type(), at::kFloat));
}

Statistics over_all_ranks(const Group& group, const at::Tensor& values) {
  const auto dimensions = other_dimensions(values);
  const auto channels = values.size(1);
  const double count = static_cast<double>(values.numel()) / static_cast<double>(channels);
  const at::Tensor mean = values.mean(dimensions);
  const at::Tensor squares = (values - spread(mean, values)).square().sum(dimensions);
  const at::Tensor all =
      gather_from_ranks(group, at::cat({at::full({1}, count, mean.options()), mean, squares}));
  const at::Tensor counts = all.slice(1, 0, 1);                  // [ranks, 1]
  const at::Tensor means = all.slice(1, 1, 1 + channels);        // [ranks, channels]
  const at::Tensor deviations = all.slice(1, 1 + channels, {});  // [ranks, channels]
  Statistics whole;
  whole.count = counts.sum(0);
  whole.mean = (means * counts).sum(0) / whole.count;
  const at::Tensor between_ranks = ((means - whole.mean).square() * counts).sum(0);
  whole.variance = (deviations.sum(0) + between_ranks) / whole.count;
  return whole;
}

at::Tensor normalised(const at::Tensor& values, const at::Tensor& mean,
                      const at::Tensor& inverse_deviation) {
  return (widened(values) - spread(mean, values)) * spread(inverse_deviation, values);
}

struct Normalise : torch::autograd::Function<Normalise> {
  static Variable forward(AutogradContext* context, const Variable& values, const Variable& weight,
                          const Variable& bias, const Group* group, const Statistics* statistics,
                          double epsilon) {
    const at::Tensor inverse_deviation = (statistics->variance + epsilon).rsqrt();
    context->save_for_backward(
        {values, weight, statistics->mean, inverse_deviation, statistics->count});
    context->saved_data["group"] = reinterpret_cast<std::int64_t>(group);
    const at::Tensor outputs =
        normalised(values, statistics->mean, inverse_deviation) * spread(weight, values) +
        spread(bias, values);
    return outputs.to(values.scalar_type());
  }

  /// Each rank's weight and bias get its own samples' part, which data parallelism averages.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& values = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& inverse_deviation = saved[3];
    const at::Tensor& count = saved[4];
    const at::Tensor norm = normalised(values, saved[2], inverse_deviation);
    const at::Tensor gradient = widened(gradients[0]);
    const auto& group = *reinterpret_cast<const Group*>(context->saved_data["group"].toInt());
    const auto dimensions = other_dimensions(values);
    const at::Tensor of_bias = gradient.sum(dimensions);
    const at::Tensor of_weight = (gradient * norm).sum(dimensions);
    std::vector<at::Tensor> sums = {at::stack({of_bias, of_weight})};
    collectively([&] { group.process_group->allreduce(sums)->wait(); });
    const at::Tensor means = sums[0] / count;
    const at::Tensor of_values =
        (gradient - spread(means[0], values) - norm * spread(means[1], values)) *
        spread(weight * inverse_deviation, values);
    return {
        of_values.to(values.scalar_type()), of_weight, of_bias, Variable(), Variable(), Variable()};
  }
};

}  // namespace

at::Tensor sync_batch_norm(const Group& group, const at::Tensor& values,
                           const BatchNormTensors& tensors, double momentum, double epsilon) {
  Statistics statistics;
  {
    const c10::NoGradGuard no_gradients;
    statistics = over_all_ranks(group, widened(values.detach()));
    tensors.running_mean.lerp_(statistics.mean, momentum);
    const at::Tensor unbiased = statistics.count / (statistics.count - 1).clamp_min(1);
    tensors.running_variance.lerp_(statistics.variance * unbiased, momentum);
  }
  return Normalise::apply(values, tensors.weight, tensors.bias, &group, &statistics, epsilon);
}

}  // namespace dtool::trainer
