// SPDX-License-Identifier: MIT
// Ranks exchange count, mean and sum of squared deviations, which can be combined without
// cancellation (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
// sample variances", 1979).
#include "trainer/model/sync_batch_norm.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

namespace dtool::trainer {
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
