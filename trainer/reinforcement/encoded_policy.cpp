// SPDX-License-Identifier: MIT
// The encoders look at all steps at once; only the memory goes step by step.
#include "trainer/reinforcement/encoded_policy.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/nn/init.h>

#include <string>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

at::Tensor drawn(std::int64_t rows, std::int64_t columns, double gain) {
  return torch::nn::init::orthogonal_(at::empty({rows, columns}), gain);
}

at::Tensor leaf(const at::Tensor& values, at::Device device) {
  return values.contiguous().to(device).requires_grad_(true);
}

}  // namespace

EncodedPolicy::EncodedPolicy(const EnvironmentSpec& spec, const PolicySettings& settings,
                             at::Device device)
    : spec_(spec), device_(device), kind_(settings.memory), encoder_(spec, settings, "", device) {
  std::int64_t width = encoder_.width();
  if (settings.separate_critic) of_critic_.emplace(spec, settings, "critic.", device);
  if (settings.normalise_observations) {
    if (count_numbers(spec) == 0) {
      throw UsageError(
          "model.normalise_observations is for numbers, but the environment shows none");
    }
    moments_.emplace(count_numbers(spec), device);
  }
  if (kind_ != PolicyMemory::none) {
    add_memory(settings.hidden);
    width = settings.hidden;
  }
  add_heads(width, of_critic_ ? of_critic_->width() : 0);
}

void EncodedPolicy::add_memory(std::int64_t hidden) {
  const std::int64_t gates = (kind_ == PolicyMemory::gru ? 3 : 4) * hidden;
  recurrent_.input = leaf(drawn(encoder_.width(), gates, 1), device_);
  recurrent_.recurrent = leaf(drawn(hidden, gates, 1), device_);
  recurrent_.input_bias = leaf(at::zeros({gates}), device_);
  recurrent_.recurrent_bias = leaf(at::zeros({gates}), device_);
}

void EncodedPolicy::add_heads(std::int64_t width, std::int64_t width_of_critic) {
  const ActionSpec& actions = spec_.actions;
  const auto rows = actions.is_box() ? actions.values() : actions.parameters();
  const at::Tensor of_actions = drawn(rows, width, 0.01);
  if (width_of_critic > 0) {
    head_weight_ = leaf(of_actions, device_);
    value_weight_ = leaf(drawn(1, width_of_critic, 1), device_);
    value_bias_ = leaf(at::zeros({1}), device_);
  } else {
    head_weight_ = leaf(at::cat({of_actions, drawn(1, width, 1)}), device_);
  }
  head_bias_ = leaf(at::zeros({head_weight_.size(0)}), device_);
  if (actions.is_box()) log_deviations_ = leaf(at::zeros({rows}), device_);
}

std::vector<NamedTensor> EncodedPolicy::parameters() const {
  std::vector<NamedTensor> all = encoder_.parameters();
  if (of_critic_) {
    for (const NamedTensor& each : of_critic_->parameters()) all.push_back(each);
  }
  const std::string memory = kind_ == PolicyMemory::gru ? "gru." : "lstm.";
  for (const NamedTensor& each : {NamedTensor{memory + "input_weight", recurrent_.input},
                                  {memory + "recurrent_weight", recurrent_.recurrent},
                                  {memory + "input_bias", recurrent_.input_bias},
                                  {memory + "recurrent_bias", recurrent_.recurrent_bias},
                                  {"head.weight", head_weight_},
                                  {"head.bias", head_bias_},
                                  {"head.log_deviations", log_deviations_},
                                  {"critic.head.weight", value_weight_},
                                  {"critic.head.bias", value_bias_}}) {
    if (each.tensor.defined()) all.push_back(each);
  }
  return all;
}

std::vector<NamedTensor> EncodedPolicy::buffers() const {
  if (!moments_) return {};
  return moments_->buffers("numbers.");
}

std::int64_t EncodedPolicy::memory_size() const {
  if (kind_ == PolicyMemory::none) return 0;
  return (kind_ == PolicyMemory::gru ? 1 : 2) * recurrent_.recurrent.size(0);
}

void EncodedPolicy::update_statistics(const at::Tensor& observations, const Group& group) {
  if (moments_) moments_->update(numbers_in(spec_, observations.flatten(0, -2)), group);
}

at::Tensor EncodedPolicy::encode(const ObservationEncoder& encoder,
                                 const at::Tensor& observations) const {
  return encoder.encode(observations, moments_ ? &*moments_ : nullptr);
}

PolicyOutput EncodedPolicy::heads(const at::Tensor& observations, const Remembered& after) const {
  const auto parameters = spec_.actions.parameters();
  at::Tensor both = at::linear(after.outputs, head_weight_, head_bias_);
  if (of_critic_ || log_deviations_.defined()) {
    const auto rows = log_deviations_.defined() ? spec_.actions.values() : parameters;
    std::vector<at::Tensor> parts = {both.narrow(-1, 0, rows)};
    if (log_deviations_.defined()) parts.push_back(log_deviations_.expand_as(parts[0]));
    parts.push_back(of_critic_
                        ? at::linear(encode(*of_critic_, observations), value_weight_, value_bias_)
                        : both.narrow(-1, rows, 1));
    both = at::cat(parts, -1);
  }
  return {both.narrow(-1, 0, parameters), both.select(-1, parameters), both, after.memory};
}

PolicyOutput EncodedPolicy::act(const at::Tensor& observations, const at::Tensor& memory,
                                const at::Tensor& keep) const {
  const c10::NoGradGuard no_gradients;
  const at::Tensor seen = encode(encoder_, observations);
  const at::Tensor before = memory.to(device_), kept = keep.to(device_);
  if (kind_ == PolicyMemory::none) return heads(observations, {seen, before});
  if (kind_ == PolicyMemory::gru) {
    const at::Tensor next = masked_gru_step(recurrent_, seen, before, kept);
    return heads(observations, {next, next});
  }
  const Remembered after = masked_lstm(recurrent_, seen.unsqueeze(0), before, kept.unsqueeze(0));
  return heads(observations, {after.outputs[0], after.memory});
}

PolicyOutput EncodedPolicy::unroll(const at::Tensor& observations,
                                   const at::Tensor& memory_at_start,
                                   const at::Tensor& keep) const {
  const at::Tensor seen = encode(encoder_, observations);
  const at::Tensor before = memory_at_start.to(device_), kept = keep.to(device_);
  if (kind_ == PolicyMemory::none) return heads(observations, {seen, before});
  if (kind_ == PolicyMemory::lstm) {
    return heads(observations, masked_lstm(recurrent_, seen, before, kept));
  }
  const at::Tensor memories = masked_gru(recurrent_, seen, before, kept);
  return heads(observations, {memories, memories[-1]});
}

}  // namespace dtool::trainer
