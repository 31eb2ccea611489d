// SPDX-License-Identifier: MIT
// The policy of every environment: encoders that fit its observations, a memory, and linear layers
// for the actions and the value. The learner knows it as a `Policy`.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/ranks/process_group.h"
#include "trainer/reinforcement/environments.h"
#include "trainer/reinforcement/masked_gru.h"
#include "trainer/reinforcement/observation_encoder.h"
#include "trainer/reinforcement/policy_settings.h"

namespace dtool::trainer {

struct PolicyOutput {
  at::Tensor logits;  ///< [.., P]: the parameters of an `ActionDistribution`
  at::Tensor values;  ///< [..], of the state, as the critic estimates it
  at::Tensor both;    ///< [.., P + 1], the logits and then the values
  at::Tensor memory;  ///< [N, H], after the last step
};

/// A policy with a memory, and its critic. N samplers, T steps, H = `memory_size`, B = the spec's
/// observation_bytes, P = its actions' parameters. Parameters are float32 on `device`; observations
/// and masks may be on any device.
class Policy : public Weights {
 public:
  /// One step of all samplers, without gradients: observations uint8 [N, B], memory float [N, H],
  /// keep float [N] (0 if the observation begins an episode, else 1).
  virtual PolicyOutput act(const at::Tensor& observations, const at::Tensor& memory,
                           const at::Tensor& keep) const = 0;

  /// The same over steps, with gradients: observations uint8 [T, N, B], memory_at_start float
  /// [N, H], keep float [T, N].
  virtual PolicyOutput unroll(const at::Tensor& observations, const at::Tensor& memory_at_start,
                              const at::Tensor& keep) const = 0;

  /// Adds what a rollout has observed, uint8 [.., B], to the statistics by which observations are
  /// normalised, if they are: after it was learned from, so that it is seen as it was. A collective
  /// operation.
  virtual void update_statistics(const at::Tensor& /*observations*/, const Group& /*group*/) {}

  /// The environments that it is made for.
  virtual const EnvironmentSpec& spec() const = 0;
  virtual std::int64_t memory_size() const = 0;
  virtual at::Device device() const = 0;
};

/// Parameters are initialised from the default generator as in AllenAct's and CleanRL's PPO:
/// orthogonal weights, scaled by sqrt(2) in the encoders, by 1 in the memory and for the value, by
/// 0.01 for the actions; biases 0. The logarithms of a box's deviations are parameters, 0 at the
/// beginning, whatever is observed. An LSTM's memory is its output and then its cell, side by side.
class EncodedPolicy : public Policy {
 public:
  /// Throws UsageError if a picture does not fit its encoder, or no numbers are to be normalised.
  EncodedPolicy(const EnvironmentSpec& spec, const PolicySettings& settings, at::Device device);

  PolicyOutput act(const at::Tensor& observations, const at::Tensor& memory,
                   const at::Tensor& keep) const override;
  PolicyOutput unroll(const at::Tensor& observations, const at::Tensor& memory_at_start,
                      const at::Tensor& keep) const override;
  void update_statistics(const at::Tensor& observations, const Group& group) override;

  const EnvironmentSpec& spec() const override { return spec_; }
  std::int64_t memory_size() const override;
  at::Device device() const override { return device_; }

  std::vector<NamedTensor> parameters() const override;
  std::vector<NamedTensor> buffers() const override;

 private:
  void add_memory(std::int64_t hidden);
  void add_heads(std::int64_t width, std::int64_t width_of_critic);
  at::Tensor encode(const ObservationEncoder& encoder, const at::Tensor& observations) const;
  PolicyOutput heads(const at::Tensor& observations, const Remembered& after) const;

  EnvironmentSpec spec_;
  at::Device device_;
  PolicyMemory kind_;
  ObservationEncoder encoder_;
  std::optional<ObservationEncoder> of_critic_;  ///< the critic's own, if it has one
  std::optional<RunningMoments> moments_;        ///< the numbers', if those are normalised
  RecurrentWeights recurrent_;
  /// Rows for the actions' logits or means; the value's row last, if the critic has no encoder.
  at::Tensor head_weight_;
  at::Tensor head_bias_;
  at::Tensor value_weight_;    ///< [1, its width], of a critic with an encoder
  at::Tensor value_bias_;      ///< [1]
  at::Tensor log_deviations_;  ///< [values], of a box
};

}  // namespace dtool::trainer
