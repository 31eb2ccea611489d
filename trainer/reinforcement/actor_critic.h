// SPDX-License-Identifier: MIT
// A policy and its critic: an encoder of coded bytes, a memory, and one linear layer for both.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "trainer/reinforcement/masked_gru.h"
#include "trainer/reinforcement/policy.h"

namespace dtool::trainer {

/// The size of the network, from an experiment's [model] table.
struct NetworkSettings {
  std::int64_t embedding = 64;  ///< values of an encoded observation
  std::int64_t hidden = 128;    ///< values of the memory
};

/// E = `embedding`, H = `hidden`. Parameters are initialised from the default generator as in
/// AllenAct's and CleanRL's recurrent PPO: orthogonal weights, scaled by sqrt(2) in the encoder, by
/// 1 in the memory and for the value, by 0.01 for the actions; biases 0.
class ActorCritic : public Policy {
 public:
  ActorCritic(const EnvironmentSpec& spec, const NetworkSettings& settings, at::Device device);

  PolicyOutput act(const at::Tensor& observations, const at::Tensor& memory,
                   const at::Tensor& keep) const override;
  PolicyOutput unroll(const at::Tensor& observations, const at::Tensor& memory_at_start,
                      const at::Tensor& keep) const override;

  const EnvironmentSpec& spec() const override { return spec_; }
  std::int64_t memory_size() const override { return gru_.recurrent.size(0); }
  at::Device device() const override { return device_; }

  std::vector<NamedTensor> parameters() const override;
  std::vector<NamedTensor> buffers() const override { return {}; }

 private:
  at::Tensor see(const at::Tensor& observations) const;
  PolicyOutput heads(const at::Tensor& memory) const;

  EnvironmentSpec spec_;
  at::Device device_;
  at::Tensor first_rows_;  ///< the first row of the table for each byte
  at::Tensor table_;       ///< [rows of all bytes, E]
  RecurrentWeights gru_;
  at::Tensor head_weight_;  ///< [actions + 1, H], the value's row last
  at::Tensor head_bias_;    ///< [actions + 1]
};

}  // namespace dtool::trainer
