// SPDX-License-Identifier: MIT
// A rollout's advantages are computed once and normalised over all ranks. In every pass they are
// dealt out anew to mini-batches of whole samplers.
#include "trainer/objectnav/agent/learner.h"

#include <ATen/ATen.h>

#include "trainer/reinforcement/advantage_statistics.h"
#include "trainer/reinforcement/gae.h"
#include "trainer/reinforcement/mini_batches.h"
#include "trainer/reinforcement/ppo_loss.h"

namespace dtool::trainer {

/// The data of a pass: [t, N], and observations [t, N, kObservationBytes].
struct Learner::Samples {
  at::Tensor observations;
  at::Tensor memory_at_start;
  at::Tensor keep;
  TakenSteps taken;

  /// Those of some samplers, whose indices are int64.
  Samples of(const at::Tensor& samplers) const {
    const auto part = [&](const at::Tensor& all) { return all.index_select(1, samplers); };
    return {part(observations),
            memory_at_start.index_select(0, samplers),
            part(keep),
            {part(taken.actions), part(taken.log_probs), part(taken.values), part(taken.advantages),
             part(taken.returns)}};
  }
};

Learner::Learner(const Group& group, ActorCritic& policy, Optimizer& optimizer,
                 const PpoSettings& settings, std::uint64_t seed, std::int64_t first_sampler)
    : group_(group),
      policy_(policy),
      optimizer_(optimizer),
      parallel_(group, tensors_of(policy.parameters())),
      settings_(settings),
      seed_(seed),
      first_sampler_(first_sampler) {
  parallel_.settle([&] {
    const Rollout nothing(1, 1, policy.memory_size());
    const auto seen = policy.unroll(nothing.observations.narrow(0, 0, 1), nothing.memory_at_start,
                                    nothing.keep.narrow(0, 0, 1));
    return seen.logits.sum() + seen.values.sum();
  });
}

Learned Learner::learn(const Rollout& rollout, std::int64_t number, const UpdateSettings& update,
                       double learning_rate, int request) {
  const auto t = rollout.steps;
  const auto first = [&](const at::Tensor& all) { return all.narrow(0, 0, t); };
  at::Tensor advantages = at::empty_like(rollout.log_probs);
  at::Tensor returns = at::empty_like(rollout.log_probs);
  estimate_advantages({rollout.rewards, rollout.values, rollout.keep}, t,
                      {settings_.gamma, settings_.gae_lambda}, advantages, returns);
  advantages = first(advantages);
  auto sums = advantage_sums(advantages);
  sums.push_back(request);
  sums = sum_over_ranks(group_, sums);
  Learned learned;
  learned.request = static_cast<int>(sums.back());
  sums.pop_back();
  const AdvantageStatistics statistics = statistics_of(sums);
  normalise_advantages(statistics, advantages);
  learned.steps = static_cast<std::int64_t>(statistics.count);
  learned.sums.steps = static_cast<double>(t * rollout.samplers());

  const Samples all{first(rollout.observations),
                    rollout.memory_at_start,
                    first(rollout.keep),
                    {first(rollout.actions), first(rollout.log_probs), first(rollout.values),
                     advantages, first(returns)}};
  const double steps = statistics.count / static_cast<double>(update.num_mini_batch * group_.size);
  for (std::int64_t pass = 0; pass < update.update_repeats; ++pass) {
    if (update.num_mini_batch == 1) {
      step(all, steps, learning_rate, learned.sums);
      continue;
    }
    for (const auto& samplers :
         mini_batches({first_sampler_, rollout.samplers()}, update.num_mini_batch, seed_,
                      number * update.update_repeats + pass)) {
      step(all.of(at::tensor(samplers, at::kLong)), steps, learning_rate, learned.sums);
    }
  }
  return learned;
}

/// `steps` are a rank's share of the mini-batch's, over all ranks.
void Learner::step(const Samples& samples, double steps, double learning_rate,
                   ExperienceSums& sums) {
  const auto there = [&](const at::Tensor& tensor) { return tensor.to(group_.device); };
  parallel_.begin_step();
  const PolicyOutput seen = policy_.unroll(there(samples.observations),
                                           there(samples.memory_at_start), there(samples.keep));
  const TakenSteps& taken = samples.taken;
  const PpoLoss loss = ppo_loss(settings_, seen.logits, seen.values,
                                {there(taken.actions), there(taken.log_probs), there(taken.values),
                                 there(taken.advantages), there(taken.returns)},
                                steps);
  parallel_.backward(loss.loss, AcrossRanks::yes);
  optimizer_.step(learning_rate);
  const PpoSums parts = sums_of(loss.sums);
  sums.learned += static_cast<double>(taken.actions.numel());
  sums.policy_loss += parts.policy_loss;
  sums.value_loss += parts.value_loss;
  sums.entropy += parts.entropy;
  sums.divergence += parts.approximate_kl;
  sums.clipped += parts.clipped;
}

}  // namespace dtool::trainer
