// SPDX-License-Identifier: MIT
// The experience of a rank's samplers between two updates, stored where the update reads it.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "trainer/data/sampler.h"
#include "trainer/ranks/rendezvous.h"
#include "trainer/reinforcement/encoded_policy.h"
#include "trainer/reinforcement/observation_encoder.h"
#include "trainer/training/graphed_step.h"

namespace dtool::trainer {

/// T steps of N samplers, of which the first `steps` are filled; on the CPU, from where the
/// policy's device can take them without a further copy.
struct Rollout {
  Rollout(std::int64_t num_steps, std::int64_t samplers, const Policy& policy);

  std::int64_t capacity() const { return actions.size(0); }
  std::int64_t samplers() const { return actions.size(1); }

  at::Tensor observations;  ///< uint8 [T + 1, N, the spec's observation_bytes]
  at::Tensor actions;       ///< float [T, N, values of an action]
  at::Tensor log_probs;     ///< float [T, N], of the actions taken
  at::Tensor values;        ///< float [T + 1, N]
  at::Tensor rewards;       ///< float [T, N]
  /// float [T, N]: where a limit cut the episode off, the discounted value of its last state, which
  /// the update adds to the reward; else 0.
  at::Tensor last_values;
  at::Tensor keep;             ///< float [T + 1, N], 0 if that observation begins an episode
  at::Tensor memory_at_start;  ///< float [N, H], on the policy's device
  std::int64_t steps = 0;
};

/// The samplers of a rank and the policy's memory of their episodes.
class Collector {
 public:
  /// Where the samplers step meanwhile, the policy handles one half of them while the other steps.
  /// Actions are drawn by (`seed`, `first_sampler` + the sampler's index, the step's number).
  /// `gamma` is the discount of a step. `note` is told where `graph` is automatic and fails.
  Collector(Environments& samplers, const Policy& policy, double gamma, std::uint64_t seed,
            std::int64_t first_sampler, const CudaGraphSetting& graph = {},
            GraphedStep::GiveUp note = nullptr);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// Fills `rollout`, continuing after the last one; its first step has the number `first_step`.
  /// After each step asks `is_enough` whether that was the last one.
  void collect(Rollout& rollout, std::int64_t first_step,
               const std::function<bool(std::int64_t steps)>& is_enough);

  /// The next rollout begins new episodes, of the next scenes.
  void advance();

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
  static std::vector<Part> parts_of(const Environments& samplers);
  void act(Rollout& rollout, std::size_t part, std::int64_t first_step);
  at::Tensor look(const Part& part, const at::Tensor& observations, const at::Tensor& keep);
  void begin_step(Rollout& rollout, const Part& part);
  void finish_step();
  void add_values_of_last_states();

  Environments& samplers_;
  std::vector<Part> parts_;  ///< stepped one after the other
  const Policy& policy_;
  std::uint64_t seed_;
  std::int64_t first_sampler_;
  at::Tensor memory_;  ///< the memory, on the policy's device
  at::Tensor keep_;
  at::Tensor answers_;  ///< the answers of a recorded look, on the policy's device
  std::vector<std::optional<GraphedStep>> recorded_;  ///< look() for each part
  double gamma_;
  std::vector<Ending> endings_;
  at::Tensor last_observations_;     ///< uint8 [N, observation_bytes]
  Part stepped_;                     ///< part whose step is running
  float* stepped_keep_ = nullptr;    ///< [N], of the observations after that step
  float* stepped_values_ = nullptr;  ///< [N], of the last states of that step
};

/// What the rewards of a rank's samplers are divided by: the running standard deviation of the
/// discounted returns that episodes had so far, over all steps of all ranks. As Gymnasium's
/// NormalizeReward and stable-baselines3's VecNormalize do; checkpoints keep it.
class ReturnScale {
 public:
  /// `gamma` is the discount of a step.
  ReturnScale(std::int64_t samplers, double gamma);

  /// Counts the rollout's rewards, then divides them; none is further from 0 than 10 afterwards. A
  /// collective operation.
  void apply(Rollout& rollout, const Group& group);

  /// The discounted return of each sampler's episode so far: double [N].
  const at::Tensor& returns() const { return returns_; }
  std::vector<NamedTensor> statistics() const { return moments_.buffers("returns."); }
  /// Restores what of it is in a checkpoint, the returns as `now` of all samplers.
  void restore(const std::vector<NamedTensor>& kept, const SamplerRange& mine);

 private:
  double gamma_;
  at::Tensor returns_;
  RunningMoments moments_;
};

// Cuts the rollouts of stragglers short: once a given share of the ranks has finished, the others
// learn from the steps they have (Wijmans et al. 2020, https://arxiv.org/abs/1911.00357, section
// 3).

/// One rank's part of it. A thread waits for the news on a separate connection to the run's store,
/// so that a query costs no message.
class Stragglers {
 public:
  /// `share` is the share of ranks that have to finish, from 0 to 1. With 0, with 1, or with one
  /// rank, no rollout is cut short.
  Stragglers(const Meeting& meeting, double share, std::chrono::milliseconds timeout);
  ~Stragglers();
  Stragglers(const Stragglers&) = delete;
  Stragglers& operator=(const Stragglers&) = delete;

  /// Rollout number `rollout` begins, the same on all ranks. The numbers follow each other and may
  /// begin anywhere above 0.
  void begin(std::int64_t rollout);

  /// Whether enough ranks have finished the current rollout. Never waits.
  bool enough_have_finished() const {
    return finished_.load(std::memory_order_relaxed) >= rollout_.load(std::memory_order_relaxed);
  }

  /// This rank has all steps of its rollout. Throws CollectiveFailed if the store is gone.
  void finish();

 private:
  void listen();
  /// The rollout that the thread waits for.
  std::int64_t awaited() const;

  Meeting meeting_;
  std::int64_t needed_;  ///< ranks that have to finish; 0: no rollout is cut short
  std::chrono::milliseconds timeout_;
  std::atomic<std::int64_t> rollout_ = 0;
  std::atomic<std::int64_t> finished_ = -1;  ///< the last rollout that enough ranks have finished
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

/// The number of ranks that is `share` of `ranks`, rounded up; 0 if no rollout would be cut short.
std::int64_t ranks_to_wait_for(double share, std::int64_t ranks);

}  // namespace dtool::trainer
