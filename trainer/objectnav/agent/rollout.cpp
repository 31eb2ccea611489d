// SPDX-License-Identifier: MIT
// The policy handles all samplers at once, then all of them take their step.
#include "trainer/objectnav/agent/rollout.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "trainer/objectnav/agent/sample_actions.h"

namespace dtool::trainer {

Rollout::Rollout(std::int64_t num_steps, std::int64_t samplers, std::int64_t memory)
    : observations(at::zeros({num_steps + 1, samplers, kObservationBytes}, at::kByte)),
      actions(at::zeros({num_steps, samplers}, at::kByte)),
      log_probs(at::zeros({num_steps, samplers})),
      values(at::zeros({num_steps + 1, samplers})),
      rewards(at::zeros({num_steps, samplers})),
      keep(at::zeros({num_steps + 1, samplers})),
      memory_at_start(at::zeros({samplers, memory})) {}

/// With threads, one half of the samplers takes its step while the policy looks at the other.
std::vector<Collector::Part> Collector::parts_of(int samplers, int threads) {
  if (threads == 0 || samplers == 1) return {{0, samplers}};
  return {{0, samplers / 2}, {samplers / 2, samplers}};
}

Collector::Collector(Samplers& samplers, int threads, ActorCritic& policy, std::uint64_t seed,
                     std::int64_t first_sampler)
    : samplers_(samplers),
      stepping_(samplers, threads),
      parts_(parts_of(samplers.count(), threads)),
      policy_(policy),
      seed_(seed),
      first_sampler_(first_sampler),
      memory_(at::zeros({samplers.count(), policy.memory_size()})),
      keep_(at::zeros({samplers.count()})),
      ended_(static_cast<std::size_t>(samplers.count())) {}

void Collector::collect(Rollout& rollout, std::int64_t first_step,
                        const std::function<bool(std::int64_t)>& is_enough) {
  const c10::NoGradGuard no_gradients;
  rollout.memory_at_start.copy_(memory_);
  rollout.keep[0].copy_(keep_);
  samplers_.observe(rollout.observations[0].data_ptr<std::uint8_t>());
  rollout.steps = 0;
  while (rollout.steps < rollout.capacity()) {
    for (const Part& part : parts_) {
      act(rollout, part, first_step);
      if (parts_.size() > 1) finish_step();  // the other part's, which went on meanwhile
      begin_step(rollout, part);
      if (parts_.size() == 1) finish_step();
    }
    ++rollout.steps;
    if (is_enough(rollout.steps)) break;
  }
  finish_step();
  const auto end = rollout.steps;
  keep_.copy_(rollout.keep[end]);
  // The value of the state after the last step. The next rollout computes it again.
  rollout.values[end].copy_(
      policy_.act(rollout.observations[end], memory_, rollout.keep[end]).values);
}

/// Chooses the actions of the rollout's next step.
void Collector::act(Rollout& rollout, const Part& part, std::int64_t first_step) {
  const auto rows = [&](const at::Tensor& all) { return all.slice(0, part.begin, part.end); };
  const auto t = rollout.steps;
  const PolicyOutput seen =
      policy_.act(rows(rollout.observations[t]), rows(memory_), rows(rollout.keep[t]));
  rows(memory_).copy_(seen.memory);
  rows(rollout.values[t]).copy_(seen.values);
  sample_actions(seen.logits, seed_, first_sampler_ + part.begin, first_step + t,
                 rows(rollout.actions[t]).data_ptr<std::uint8_t>(),
                 rows(rollout.log_probs[t]).data_ptr<float>());
}

void Collector::begin_step(Rollout& rollout, const Part& part) {
  const auto t = rollout.steps;
  stepping_.begin(
      part.begin, part.end,
      {rollout.actions[t].data_ptr<std::uint8_t>(), rollout.rewards[t].data_ptr<float>(),
       ended_.data(), rollout.observations[t + 1].data_ptr<std::uint8_t>()});
  stepped_ = part;
  stepped_keep_ = rollout.keep[t + 1].data_ptr<float>();
}

/// Waits for the step that was begun last, if it has not been waited for.
void Collector::finish_step() {
  stepping_.wait();
  for (auto i = static_cast<std::size_t>(stepped_.begin);
       i < static_cast<std::size_t>(stepped_.end); ++i) {
    stepped_keep_[i] = ended_[i] != 0 ? 0.0F : 1.0F;
  }
  stepped_ = {};
}

void Collector::restore(const at::Tensor& memory, const at::Tensor& keep) {
  memory_.narrow(0, 0, memory.size(0)).copy_(memory);
  keep_.narrow(0, 0, keep.size(0)).copy_(keep);
}

}  // namespace dtool::trainer
