// SPDX-License-Identifier: MIT
// There are as many samplers as episodes, and only the first episode of each counts, so that short
// episodes do not count more often than long ones.
#include "trainer/objectnav/agent/validation.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "trainer/objectnav/agent/sample_actions.h"
#include "trainer/objectnav/samplers.h"

namespace dtool::trainer {
namespace {

/// So many episodes at once: a house takes kilobytes.
constexpr std::int64_t kAtOnce = 1000;

EpisodeSums play(const EnvironmentSettings& environment, std::uint64_t seed, ActorCritic& policy,
                 std::int64_t first, std::int64_t count) {
  Samplers samplers(environment, EpisodeSet::validation, seed, first, static_cast<int>(count));
  samplers.count_only(1);
  const auto places = static_cast<std::size_t>(count);
  at::Tensor observations = at::empty({count, kObservationBytes}, at::kByte);
  at::Tensor memory = at::zeros({count, policy.memory_size()});
  at::Tensor keep = at::zeros({count});
  std::vector<std::uint8_t> actions(places);
  std::vector<std::uint8_t> ended(places);
  std::vector<float> rewards(places);
  std::vector<float> log_probs(places);
  auto* bytes = observations.data_ptr<std::uint8_t>();
  samplers.observe(bytes);
  for (std::int64_t step = 0; !samplers.counted_all(); ++step) {
    const PolicyOutput seen = policy.act(observations, memory, keep);
    memory = seen.memory;
    sample_actions(seen.logits, seed, first, step, actions.data(), log_probs.data());
    samplers.step(0, samplers.count(), actions.data(), rewards.data(), ended.data(), bytes);
    auto* keeps = keep.data_ptr<float>();
    for (std::size_t i = 0; i < places; ++i) keeps[i] = ended[i] != 0 ? 0.0F : 1.0F;
  }
  return samplers.take_sums();
}

}  // namespace

Scores validate(const EnvironmentSettings& environment, const ValidationSettings& settings,
                ActorCritic& policy, const Group& group) {
  const c10::NoGradGuard no_gradients;
  const auto first = settings.episodes * group.rank / group.size;
  const auto end = settings.episodes * (group.rank + 1) / group.size;
  EpisodeSums mine;
  for (auto next = first; next < end; next += kAtOnce) {
    mine += play(environment, settings.seed, policy, next, std::min(kAtOnce, end - next));
  }
  const auto sums = sum_over_ranks(
      group, {static_cast<double>(mine.episodes), mine.spl, static_cast<double>(mine.successes)});
  return {{"validation_spl", sums[1] / sums[0]}, {"validation_success", sums[2] / sums[0]}};
}

}  // namespace dtool::trainer
