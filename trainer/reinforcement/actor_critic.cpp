// SPDX-License-Identifier: MIT
// The encoder has no bias: each byte of an observation adds a row.
#include "trainer/reinforcement/actor_critic.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/nn/init.h>

#include <cmath>

#include "trainer/reinforcement/view_embedding.h"

namespace dtool::trainer {
namespace {

at::Tensor orthogonal(std::int64_t rows, std::int64_t columns, double gain) {
  return torch::nn::init::orthogonal_(at::empty({rows, columns}), gain);
}

at::Tensor learned(const at::Tensor& values, at::Device device) {
  return values.contiguous().to(device).requires_grad_(true);
}

}  // namespace

ActorCritic::ActorCritic(const EnvironmentSpec& spec, const NetworkSettings& settings,
                         at::Device device)
    : spec_(spec), device_(device), first_rows_(first_rows_of(spec).to(device)) {
  const auto hidden = settings.hidden;
  const auto zeros = [&](std::int64_t size) { return learned(at::zeros({size}), device); };
  table_ = learned(orthogonal(embedding_rows(spec), settings.embedding, std::sqrt(2.0)), device);
  gru_.input = learned(orthogonal(settings.embedding, 3 * hidden, 1), device);
  gru_.recurrent = learned(orthogonal(hidden, 3 * hidden, 1), device);
  gru_.input_bias = zeros(3 * hidden);
  gru_.recurrent_bias = zeros(3 * hidden);
  const at::Tensor action_rows = orthogonal(spec.actions.parameters(), hidden, 0.01);
  head_weight_ = learned(at::cat({action_rows, orthogonal(1, hidden, 1)}), device);
  head_bias_ = zeros(spec.actions.parameters() + 1);
}

std::vector<NamedTensor> ActorCritic::parameters() const {
  return {{"view.weight", table_},
          {"gru.input_weight", gru_.input},
          {"gru.recurrent_weight", gru_.recurrent},
          {"gru.input_bias", gru_.input_bias},
          {"gru.recurrent_bias", gru_.recurrent_bias},
          {"head.weight", head_weight_},
          {"head.bias", head_bias_}};
}

at::Tensor ActorCritic::see(const at::Tensor& observations) const {
  if (device_.is_cpu()) return embed_views(observations, table_, first_rows_);
  return embed_views_by_product(observations.to(device_), table_, first_rows_);
}

PolicyOutput ActorCritic::heads(const at::Tensor& memory) const {
  const at::Tensor both = at::linear(memory, head_weight_, head_bias_);
  const auto parameters = spec_.actions.parameters();
  return {both.narrow(-1, 0, parameters), both.select(-1, parameters), both, {}};
}

PolicyOutput ActorCritic::act(const at::Tensor& observations, const at::Tensor& memory,
                              const at::Tensor& keep) const {
  const c10::NoGradGuard no_gradients;
  const at::Tensor seen = see(observations);
  const at::Tensor next = masked_gru_step(gru_, seen, memory.to(device_), keep.to(device_));
  PolicyOutput output = heads(next);
  output.memory = next;
  return output;
}

PolicyOutput ActorCritic::unroll(const at::Tensor& observations, const at::Tensor& memory_at_start,
                                 const at::Tensor& keep) const {
  const at::Tensor seen = see(observations);
  const at::Tensor memories = masked_gru(gru_, seen, memory_at_start.to(device_), keep.to(device_));
  PolicyOutput output = heads(memories);
  output.memory = memories[-1];
  return output;
}

}  // namespace dtool::trainer
