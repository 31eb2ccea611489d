// SPDX-License-Identifier: MIT
// A rollout's advantages are computed once and normalised over all ranks. In every pass they are
// dealt out anew to mini-batches of whole samplers.
#include "trainer/reinforcement/learner.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "trainer/data/sampler.h"
#include "trainer/reinforcement/ppo_loss.h"

namespace dtool::trainer {

/// The data of a pass, on the device: [t, N], and observations [t, N, bytes].
struct Learner::Samples {
  at::Tensor observations;
  at::Tensor memory_at_start;
  at::Tensor keep;
  TakenSteps taken;

  static Samples from(const std::vector<at::Tensor>& t) {
    return {t[0], t[1], t[2], {t[3], t[4], t[5], t[6], t[7]}};
  }
};

namespace {

/// Ranks whose rollouts are cut short at different steps would not all record.
CudaGraphSetting graph_of(const PpoSettings& settings, const Group& group) {
  CudaGraphSetting graph = settings.cuda_graph;
  if (graph.wanted == CudaGraph::automatic && group.size > 1 && settings.preemption_share < 1) {
    graph.wanted = CudaGraph::off;
  }
  return graph;
}

/// Those of some samplers, whose indices are int64. The memory has no steps.
std::vector<at::Tensor> part_of(const std::vector<at::Tensor>& all, const at::Tensor& samplers) {
  std::vector<at::Tensor> part;
  for (const at::Tensor& each : all)
    part.push_back(each.index_select(part.size() == 1 ? 0 : 1, samplers));
  return part;
}

/// Without waiting for the device. What is in pinned memory must stay until the device has it.
at::Tensor sent(const at::Tensor& tensor, at::Device device) {
  return tensor.to(device, tensor.scalar_type(), /*non_blocking=*/true);
}

}  // namespace

Learner::Learner(const Group& group, const Policy& policy, Optimizer& optimizer,
                 const PpoSettings& settings, std::uint64_t seed, std::int64_t first_sampler,
                 GraphedStep::GiveUp note)
    : group_(group),
      policy_(policy),
      optimizer_(optimizer),
      parallel_(group, tensors_of(policy.parameters())),
      settings_(settings),
      seed_(seed),
      first_sampler_(first_sampler),
      sums_(at::zeros({kPpoSums}, at::TensorOptions(group.device).dtype(at::kDouble))),
      graphed_(graphed_step(
          graph_of(settings, group), group.device, optimizer.replay(),
          [this](const std::vector<at::Tensor>& inputs) { compute(inputs); }, std::move(note))) {
  parallel_.settle([&] {
    const Rollout nothing(1, 1, policy);
    const auto seen = policy.unroll(nothing.observations.narrow(0, 0, 1), nothing.memory_at_start,
                                    nothing.keep.narrow(0, 0, 1));
    return seen.logits.sum() + seen.values.sum();
  });
}

void Learner::weigh(const LossWeights& weights) {
  LossWeights& mine = settings_;
  if (mine == weights) return;
  mine = weights;
  if (graphed_) graphed_->forget();
}

Learned Learner::learn(const Rollout& rollout, std::int64_t number, const UpdateSettings& update,
                       double learning_rate, int request) {
  const auto t = rollout.steps;
  at::Tensor advantages = at::empty_like(rollout.log_probs);
  at::Tensor returns = at::empty_like(rollout.log_probs);
  const at::Tensor rewards = rollout.rewards + rollout.last_values;
  estimate_advantages({rewards, rollout.values, rollout.keep}, t,
                      {settings_.gamma, settings_.gae_lambda}, advantages, returns);
  advantages = advantages.narrow(0, 0, t);
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
  learned.sums.learned = learned.sums.steps * static_cast<double>(update.update_repeats);

  const std::vector<at::Tensor> all = take(rollout, advantages, returns);
  const at::Tensor steps =
      at::full({}, statistics.count / static_cast<double>(update.num_mini_batch * group_.size),
               at::TensorOptions(group_.device).dtype(at::kFloat));
  sums_.zero_();
  for (std::int64_t pass = 0; pass < update.update_repeats; ++pass) {
    if (update.num_mini_batch == 1) {
      step(all, steps, learning_rate);
      continue;
    }
    for (const auto& samplers :
         mini_batches({first_sampler_, rollout.samplers()}, update.num_mini_batch, seed_,
                      number * update.update_repeats + pass)) {
      step(part_of(all, sent(at::tensor(samplers, at::kLong), group_.device)), steps,
           learning_rate);
    }
  }
  learned.sums.losses = sums_of(sums_);  // waits for the device: what it was sent may change now
  return learned;
}

/// The tensors of Samples: once a rollout, not for each mini-batch.
std::vector<at::Tensor> Learner::take(const Rollout& rollout, const at::Tensor& advantages,
                                      const at::Tensor& returns) {
  const auto there = [&](const at::Tensor& all) {
    return sent(all.narrow(0, 0, rollout.steps), group_.device);
  };
  return {there(rollout.observations), rollout.memory_at_start,
          there(rollout.keep),         there(rollout.actions),
          there(rollout.log_probs),    there(rollout.values),
          there(advantages),           there(returns)};
}

/// `steps` are a rank's share of the mini-batch's, over all ranks.
void Learner::step(std::vector<at::Tensor> inputs, const at::Tensor& steps, double learning_rate) {
  optimizer_.prepare(learning_rate);
  inputs.push_back(steps);
  if (graphed_) {
    graphed_->run(inputs);
  } else {
    compute(inputs);
  }
}

/// What a CUDA graph records.
void Learner::compute(const std::vector<at::Tensor>& inputs) {
  const Samples samples = Samples::from(inputs);
  parallel_.begin_step();
  const PolicyOutput seen =
      policy_.unroll(samples.observations, samples.memory_at_start, samples.keep);
  const PpoLoss loss = ppo_loss(settings_, {policy_.spec().actions, seen.logits}, seen.values,
                                samples.taken, inputs.back());
  parallel_.backward(loss.loss, AcrossRanks::yes);
  optimizer_.apply();
  sums_.add_(loss.sums);
}

namespace {

/// All its numbers, in the order in which they are sent.
std::vector<double*> numbers_in(ExperienceSums& sums) {
  EpisodeSums& ended = sums.episodes;
  PpoSums& losses = sums.losses;
  std::vector<double*> numbers = {&ended.episodes, &ended.steps};
  for (double& each : ended.scores) numbers.push_back(&each);
  numbers.insert(numbers.end(),
                 {&ended.reward, &sums.steps, &sums.rollouts, &sums.cut_short, &sums.collecting,
                  &sums.learned, &losses.policy_loss, &losses.value_loss, &losses.entropy,
                  &losses.approximate_kl, &losses.clipped});
  return numbers;
}

void add_mean(Scores& scores, const std::string& name, double sum, double count) {
  if (count > 0) scores.emplace_back(name, sum / count);
}

}  // namespace

void ExperienceSums::operator+=(ExperienceSums other) {
  const auto scores = std::max(episodes.scores.size(), other.episodes.scores.size());
  episodes.scores.resize(scores);
  other.episodes.scores.resize(scores);
  const auto mine = numbers_in(*this), theirs = numbers_in(other);
  for (std::size_t i = 0; i < mine.size(); ++i) *mine[i] += *theirs[i];
}

ExperienceSums sum_over_ranks(const Group& group, ExperienceSums sums) {
  const auto numbers = numbers_in(sums);
  std::vector<double> values;
  for (const double* each : numbers) values.push_back(*each);
  values = sum_over_ranks(group, values);
  for (std::size_t i = 0; i < numbers.size(); ++i) *numbers[i] = values[i];
  return sums;
}

double mean_loss(const ExperienceSums& sums, const LossWeights& weights) {
  const PpoSums& losses = sums.losses;
  return (losses.policy_loss + weights.value_loss_coef * losses.value_loss -
          weights.entropy_coef * losses.entropy) /
         sums.learned;
}

Scores scores_of(const ExperienceSums& sums, const std::vector<std::string>& names) {
  const EpisodeSums& ended = sums.episodes;
  Scores scores;
  for (std::size_t i = 0; i < ended.scores.size(); ++i) {
    add_mean(scores, "train_" + names.at(i), ended.scores[i], ended.episodes);
  }
  return scores;
}

Scores details_of(const ExperienceSums& sums, double seconds) {
  const EpisodeSums& ended = sums.episodes;
  const PpoSums& losses = sums.losses;
  Scores details;
  add_mean(details, "train_reward", ended.reward, ended.episodes);
  add_mean(details, "episode_steps", ended.steps, ended.episodes);
  add_mean(details, "policy_loss", losses.policy_loss, sums.learned);
  add_mean(details, "value_loss", losses.value_loss, sums.learned);
  add_mean(details, "entropy", losses.entropy, sums.learned);
  add_mean(details, "kl", losses.approximate_kl, sums.learned);
  add_mean(details, "clipped", losses.clipped, sums.learned);
  add_mean(details, "cut_short", sums.cut_short, sums.rollouts);
  add_mean(details, "collecting", sums.collecting, seconds);
  return details;
}

}  // namespace dtool::trainer
