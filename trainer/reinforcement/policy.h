// SPDX-License-Identifier: MIT
// What the learner knows of a network such as `EncodedPolicy`.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>

#include "trainer/model/model.h"
#include "trainer/ranks/process_group.h"
#include "trainer/reinforcement/environments.h"

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

}  // namespace dtool::trainer
