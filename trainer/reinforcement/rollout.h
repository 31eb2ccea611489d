// SPDX-License-Identifier: MIT
// The experience of a rank's samplers between two updates, stored where the update reads it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "trainer/reinforcement/policy.h"
#include "trainer/training/graphed_step.h"

namespace dtool::trainer {

/// T steps of N samplers, of which the first `steps` are filled; on the CPU, from where the
/// policy's device can take them without a further copy.
struct Rollout {
  Rollout(std::int64_t num_steps, std::int64_t samplers, const Policy& policy);

  std::int64_t capacity() const { return actions.size(0); }
  std::int64_t samplers() const { return actions.size(1); }

  at::Tensor observations;     ///< uint8 [T + 1, N, the spec's observation_bytes]
  at::Tensor actions;          ///< uint8 [T, N]
  at::Tensor log_probs;        ///< float [T, N], of the actions taken
  at::Tensor values;           ///< float [T + 1, N]
  at::Tensor rewards;          ///< float [T, N]
  at::Tensor keep;             ///< float [T + 1, N], 0 if that observation begins an episode
  at::Tensor memory_at_start;  ///< float [N, H], on the policy's device
  std::int64_t steps = 0;
};

/// The samplers of a rank and the policy's memory of their episodes.
class Collector {
 public:
  /// The samplers step on `threads` other threads, if any, while the policy handles other samplers.
  /// Actions are drawn by (`seed`, `first_sampler` + the sampler's index, the step's number).
  /// `note` is told where `graph` is automatic and fails.
  Collector(Environments& samplers, int threads, const Policy& policy, std::uint64_t seed,
            std::int64_t first_sampler, const CudaGraphSetting& graph = {},
            GraphedStep::GiveUp note = nullptr);
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// Fills `rollout`, continuing after the last one; its first step has the number `first_step`.
  /// After each step asks `is_enough` whether that was the last one.
  void collect(Rollout& rollout, std::int64_t first_step,
               const std::function<bool(std::int64_t steps)>& is_enough);

  /// The memory (float [N, H]) and mask (float [N]) at the beginning of the next rollout.
  const at::Tensor& memory() const { return memory_; }
  const at::Tensor& keep() const { return keep_; }
  /// Restores those of the first samplers, or of all.
  void restore(const at::Tensor& memory, const at::Tensor& keep);

 private:
  /// Samplers [begin, end).
  struct Part {
    int begin = 0;
    int end = 0;
  };
  static std::vector<Part> parts_of(int samplers, int threads);
  void act(Rollout& rollout, std::size_t part, std::int64_t first_step);
  at::Tensor look(const Part& part, const at::Tensor& observations, const at::Tensor& keep);
  void begin_step(Rollout& rollout, const Part& part);
  void finish_step();

  Environments& samplers_;
  std::vector<Part> parts_;  ///< stepped one after the other
  const Policy& policy_;
  std::uint64_t seed_;
  std::int64_t first_sampler_;
  at::Tensor memory_;  ///< the memory, on the policy's device
  at::Tensor keep_;
  at::Tensor answers_;  ///< the answers of a recorded look, on the policy's device
  std::vector<std::optional<GraphedStep>> recorded_;  ///< look() for each part
  std::vector<std::uint8_t> ended_;
  Part stepped_;                   ///< part whose step is running
  float* stepped_keep_ = nullptr;  ///< [N], of the observations after that step
  SteppingThreads stepping_;       ///< the last: it ends before what its threads write into
};

}  // namespace dtool::trainer
