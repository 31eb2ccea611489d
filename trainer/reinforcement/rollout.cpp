// The policy looks at all samplers at once, then all of them take their step.
#include "trainer/reinforcement/rollout.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "trainer/reinforcement/sample_actions.h"

namespace dtool::trainer {

Rollout::Rollout(std::int64_t num_steps, std::int64_t samplers, std::int64_t memory)
    : observations(at::zeros({num_steps + 1, samplers, kObservationBytes}, at::kByte)),
      actions(at::zeros({num_steps, samplers}, at::kByte)),
      log_probs(at::zeros({num_steps, samplers})),
      values(at::zeros({num_steps + 1, samplers})),
      rewards(at::zeros({num_steps, samplers})),
      keep(at::zeros({num_steps + 1, samplers})),
      memory_at_start(at::zeros({samplers, memory})) {}

Collector::Collector(Samplers& samplers, ActorCritic& policy, std::uint64_t seed,
                     std::int64_t first_sampler)
    : samplers_(samplers),
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
  std::int64_t t = 0;
  while (t < rollout.capacity()) {
    const PolicyOutput seen = policy_.act(rollout.observations[t], memory_, rollout.keep[t]);
    memory_ = seen.memory;
    rollout.values[t].copy_(seen.values);
    auto* actions = rollout.actions[t].data_ptr<std::uint8_t>();
    sample_actions(seen.logits, seed_, first_sampler_, first_step + t, actions,
                   rollout.log_probs[t].data_ptr<float>());
    ++t;
    samplers_.step(0, samplers_.count(), actions, rollout.rewards[t - 1].data_ptr<float>(),
                   ended_.data(), rollout.observations[t].data_ptr<std::uint8_t>());
    auto* keep = rollout.keep[t].data_ptr<float>();
    for (std::size_t i = 0; i < ended_.size(); ++i) keep[i] = ended_[i] != 0 ? 0.0F : 1.0F;
    if (is_enough(t)) break;
  }
  rollout.steps = t;
  keep_.copy_(rollout.keep[t]);
  // What the steps after the last one are worth. The next rollout looks at the same again.
  rollout.values[t].copy_(policy_.act(rollout.observations[t], memory_, rollout.keep[t]).values);
}

void Collector::restore(const at::Tensor& memory, const at::Tensor& keep) {
  memory_.copy_(memory);
  keep_.copy_(keep);
}

}  // namespace dtool::trainer
