// SPDX-License-Identifier: MIT
// The state of all ranks' samplers in a checkpoint: where they are, and the policy's memory of
// it.
#pragma once

#include <string>
#include <vector>

#include "trainer/data/sampler.h"
#include "trainer/model/model.h"
#include "trainer/ranks/process_group.h"
#include "trainer/ranks/rendezvous.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/reinforcement/rollout.h"

namespace dtool::trainer {

/// [all samplers, values] from each rank's [its samplers, values]. A collective operation.
at::Tensor gather_rows(const Group& group, const std::vector<SamplerRange>& shares,
                       const at::Tensor& mine);

/// Gathers the states on rank 0, in the order of the ranks; the other ranks' result is meaningless.
/// Nothing if the samplers have no state. `shares` are those of all ranks. A collective operation.
std::vector<NamedTensor> gather_samplers(const Group& group,
                                         const std::vector<SamplerRange>& shares,
                                         const Environments& samplers, const Collector& collector);

/// Restores those of this rank's samplers, `mine`, that are in the checkpoint, whichever rank had
/// them then: samplers are identified by their global numbers. Returns how many samplers the
/// checkpoint has that fit, for this rank or for others; those that it does not have begin new
/// episodes. If the checkpoint has no samplers, or they have another seed or other settings, none
/// is restored, nothing changes, and the result is 0.
std::int64_t restore_samplers(const std::vector<NamedTensor>& kept, const SamplerRange& mine,
                              Environments& samplers, Collector& collector);

// Which of a run's samplers each rank has.

/// The samplers of each rank, by rank: global numbers that follow each other. `members` are all
/// ranks, or nobody for a group of one.
std::vector<SamplerRange> shares_of(const std::vector<Member>& members,
                                    const DdPpoSettings& settings);

/// The number of samplers of all ranks.
std::int64_t count_all(const std::vector<SamplerRange>& shares);

/// The same ranks as nodes of the tutorial.
Nodes nodes_of(const std::vector<Member>& members, const DdPpoSettings& settings);

}  // namespace dtool::trainer
