// SPDX-License-Identifier: MIT
// Three tensors with a row per rank: `samplers` (bytes), `memory` [N x H] and `keep` [N].
#include "trainer/objectnav/agent/kept_samplers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

namespace dtool::trainer {
namespace {

/// [ranks, values] from each rank's `values`, which are equally many.
at::Tensor gather_rows(const Group& group, const at::Tensor& row) {
  const at::Tensor mine = row.reshape({1, -1}).to(group.device);
  if (group.size == 1) return mine.cpu();
  std::vector<std::vector<at::Tensor>> rows(1);
  for (int i = 0; i < group.size; ++i) rows[0].push_back(at::empty_like(mine));
  std::vector<at::Tensor> inputs = {mine};
  collectively([&] { group.process_group->allgather(rows, inputs)->wait(); });
  return at::cat(rows[0]).cpu();
}

at::Tensor as_tensor(const std::vector<std::uint8_t>& bytes) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::copy(bytes.begin(), bytes.end(), tensor.data_ptr<std::uint8_t>());
  return tensor;
}

const at::Tensor* find(const std::vector<NamedTensor>& kept, const char* name) {
  for (const NamedTensor& each : kept) {
    if (each.name == name) return &each.tensor;
  }
  return nullptr;
}

}  // namespace

std::vector<NamedTensor> gather_samplers(const Group& group, const Samplers& samplers,
                                         const Collector& collector) {
  return {{"samplers", gather_rows(group, as_tensor(samplers.state()))},
          {"memory", gather_rows(group, collector.memory())},
          {"keep", gather_rows(group, collector.keep())}};
}

std::int64_t restore_samplers(const std::vector<NamedTensor>& kept, const Group& group,
                              Samplers& samplers, Collector& collector) {
  const auto* states = find(kept, "samplers");
  const auto* memory = find(kept, "memory");
  const auto* keep = find(kept, "keep");
  if (states == nullptr || memory == nullptr || keep == nullptr) return 0;
  const std::int64_t count = samplers.count();
  const std::int64_t there = keep->numel();
  const bool fits =
      memory->numel() == there * collector.memory().size(1) &&
      states->numel() * count == there * static_cast<std::int64_t>(samplers.state().size());
  if (!fits) return 0;
  // By their numbers among all ranks' samplers, whichever rank had them.
  const std::int64_t first = std::min(there, group.rank * count);
  const std::int64_t mine = std::min(there - first, count);
  const auto rows = [&](const at::Tensor& all) {
    return all.reshape({there, -1}).narrow(0, first, mine).contiguous();
  };
  const at::Tensor its_states = rows(*states);
  const auto* bytes = its_states.data_ptr<std::uint8_t>();
  try {
    samplers.restore(std::vector<std::uint8_t>(bytes, bytes + its_states.numel()));
  } catch (const std::runtime_error&) {
    return 0;  // of other houses
  }
  collector.restore(rows(*memory), rows(*keep).flatten());
  return std::min(there, group.size * count);
}

}  // namespace dtool::trainer
