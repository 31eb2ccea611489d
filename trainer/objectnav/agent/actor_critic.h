// SPDX-License-Identifier: MIT
// The policy of ObjectNav and its critic: an encoder of the view, a memory, and one linear layer
// for both.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/objectnav/agent/network_settings.h"
#include "trainer/objectnav/observation.h"
#include "trainer/reinforcement/masked_gru.h"

namespace dtool::trainer {

struct PolicyOutput {
  at::Tensor logits;  ///< [.., kActions], of the probabilities of the actions
  at::Tensor values;  ///< [..], of the state, as the critic estimates it
  at::Tensor both;    ///< [.., kActions + 1], the logits and then the values
  at::Tensor memory;  ///< [N, H], after the last step
};

/// E = `embedding`, H = `hidden`, N samplers, T steps. Parameters are float32 on `device`,
/// initialised from the default generator as in AllenAct's and CleanRL's recurrent PPO: orthogonal
/// weights, scaled by sqrt(2) in the encoder, by 1 in the memory and for the value, by 0.01 for the
/// actions; biases 0. Observations and masks may be on any device.
class ActorCritic : public Weights {
 public:
  ActorCritic(const NetworkSettings& settings, at::Device device);

  /// One step of all samplers, without gradients: observations uint8 [N, kObservationBytes], memory
  /// float [N, H], keep float [N] (0 if the observation begins an episode, else 1).
  PolicyOutput act(const at::Tensor& observations, const at::Tensor& memory,
                   const at::Tensor& keep) const;

  /// The same over steps, with gradients: observations uint8 [T, N, kObservationBytes],
  /// memory_at_start float [N, H], keep float [T, N].
  PolicyOutput unroll(const at::Tensor& observations, const at::Tensor& memory_at_start,
                      const at::Tensor& keep) const;

  std::int64_t memory_size() const { return gru_.recurrent.size(0); }
  at::Device device() const { return device_; }

  std::vector<NamedTensor> parameters() const override;
  std::vector<NamedTensor> buffers() const override { return {}; }

 private:
  at::Tensor see(const at::Tensor& observations) const;
  PolicyOutput heads(const at::Tensor& memory) const;

  at::Device device_;
  at::Tensor first_rows_;  ///< the first row of the table for each byte
  at::Tensor table_;       ///< [kEmbeddingRows, E]
  GruWeights gru_;
  at::Tensor head_weight_;  ///< [kActions + 1, H], the value's row last
  at::Tensor head_bias_;    ///< [kActions + 1]
};

}  // namespace dtool::trainer
