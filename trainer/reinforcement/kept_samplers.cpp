// SPDX-License-Identifier: MIT
// Three tensors with a row for each of the N samplers: `samplers` (bytes), `memory` [N, H] and
// `keep` [N].
#include "trainer/reinforcement/kept_samplers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

namespace dtool::trainer {

namespace {

const at::Tensor* find(const std::vector<NamedTensor>& kept, const char* name) {
  for (const NamedTensor& each : kept) {
    if (each.name == name) return &each.tensor;
  }
  return nullptr;
}

}  // namespace

/// Ranks with fewer samplers than others send empty rows, too, since all send equally much.
at::Tensor gather_rows(const Group& group, const std::vector<SamplerRange>& shares,
                       const at::Tensor& mine) {
  if (group.size == 1) return mine.cpu();
  // Gloo divides by the size of what is sent.
  if (mine.size(1) == 0) return at::zeros({count_all(shares), 0});
  std::int64_t most = 0;
  for (const SamplerRange& each : shares) most = std::max(most, each.count);
  at::Tensor sent = at::zeros({most, mine.size(1)}, mine.options());
  sent.narrow(0, 0, mine.size(0)).copy_(mine);
  sent = sent.to(group.device);
  std::vector<std::vector<at::Tensor>> rows(1);
  for (int i = 0; i < group.size; ++i) rows[0].push_back(at::empty_like(sent));
  std::vector<at::Tensor> inputs = {sent};
  collectively([&] { group.process_group->allgather(rows, inputs)->wait(); });
  for (std::size_t i = 0; i < shares.size(); ++i) {
    rows[0][i] = rows[0][i].narrow(0, 0, shares[i].count);
  }
  return at::cat(rows[0]).cpu();
}

std::vector<NamedTensor> gather_samplers(const Group& group,
                                         const std::vector<SamplerRange>& shares,
                                         const Environments& samplers, const Collector& collector) {
  const std::vector<std::uint8_t> state = samplers.state();
  if (state.empty()) return {};
  const auto rows = [&](const at::Tensor& mine) {
    return gather_rows(group, shares, mine.reshape({samplers.count(), -1}));
  };
  return {{"samplers", rows(at::tensor(state))},
          {"memory", rows(collector.memory())},
          {"keep", rows(collector.keep()).flatten()}};
}

std::int64_t restore_samplers(const std::vector<NamedTensor>& kept, const SamplerRange& mine,
                              Environments& samplers, Collector& collector) {
  const auto* states = find(kept, "samplers");
  const auto* memory = find(kept, "memory");
  const auto* keep = find(kept, "keep");
  if (states == nullptr || memory == nullptr || keep == nullptr) return 0;
  const std::int64_t there = keep->numel();
  const bool fits =
      there > 0 && states->scalar_type() == at::kByte && memory->is_floating_point() &&
      keep->is_floating_point() && memory->numel() == there * collector.memory().size(1) &&
      states->numel() * mine.count == there * static_cast<std::int64_t>(samplers.state().size());
  if (!fits) return 0;
  // By their numbers among all ranks' samplers, whichever rank had them.
  const std::int64_t first = std::min(there, mine.first);
  const std::int64_t count = std::min(there - first, mine.count);
  const auto rows = [&](const at::Tensor& all) {
    return all.reshape({there, -1}).narrow(0, first, count).contiguous();
  };
  const at::Tensor its_states = rows(*states);
  const auto* bytes = its_states.data_ptr<std::uint8_t>();
  try {
    const auto how = samplers.restore(std::vector<std::uint8_t>(bytes, bytes + its_states.numel()));
    if (how == GoesOn::with_new_episodes) return 0;
  } catch (const std::runtime_error&) {
    return 0;  // the states are of other environments
  }
  collector.restore(rows(*memory), rows(*keep).flatten());
  return there;
}

// Ranks of one machine need not have neighbouring numbers, nor machines equally many ranks.

std::vector<SamplerRange> shares_of(const std::vector<Member>& members,
                                    const DdPpoSettings& settings) {
  if (members.empty()) return {{0, settings.samplers}};
  std::vector<SamplerRange> shares;
  std::int64_t first = 0;
  for (auto each = members.begin(); each != members.end(); ++each) {
    const auto beside = [&](const Member& other) { return on_one_machine(*each, other); };
    const auto before = std::count_if(members.begin(), each, beside);
    const auto there = std::ranges::count_if(members, beside);
    shares.push_back({first, count_samplers(settings, before, there)});
    first += shares.back().count;
  }
  return shares;
}

std::int64_t count_all(const std::vector<SamplerRange>& shares) {
  return shares.back().first + shares.back().count;
}

Nodes nodes_of(const std::vector<Member>& members, const DdPpoSettings& settings) {
  if (members.empty()) return nodes_of(settings, {1, 1});
  const std::int64_t machines = count_machines(members);
  std::int64_t most = 1;
  for (const Member& each : members) {
    const auto beside = [&](const Member& other) { return on_one_machine(each, other); };
    most = std::max<std::int64_t>(most, std::ranges::count_if(members, beside));
  }
  if (settings.samplers_per == SamplersPer::rank) {
    return nodes_of(settings, {static_cast<std::int64_t>(members.size()), machines});
  }
  return nodes_of(settings, {machines * most, machines});
}

}  // namespace dtool::trainer
