// SPDX-License-Identifier: MIT
// The state of all ranks' samplers in a checkpoint: their current houses, and the policy's memory
// of them.
#pragma once

#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/objectnav/agent/rollout.h"
#include "trainer/objectnav/samplers.h"
#include "trainer/ranks/process_group.h"

namespace dtool::trainer {

/// Gathers the states on rank 0, in the order of the ranks; the other ranks' result is meaningless.
/// A collective operation.
std::vector<NamedTensor> gather_samplers(const Group& group, const Samplers& samplers,
                                         const Collector& collector);

/// Restores those of this rank's samplers that are in the checkpoint, whichever rank had them then:
/// samplers are identified by their global numbers. Returns how many samplers of all ranks were
/// restored; the others begin new episodes. If the checkpoint has no samplers, or they have another
/// seed or other settings, none is restored and nothing changes.
std::int64_t restore_samplers(const std::vector<NamedTensor>& kept, const Group& group,
                              Samplers& samplers, Collector& collector);

}  // namespace dtool::trainer
