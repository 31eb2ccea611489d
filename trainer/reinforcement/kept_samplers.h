// What the samplers of all ranks go on from, as a checkpoint keeps it: the houses they are in, and
// what the policy remembers of them.
#pragma once

#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/objectnav/samplers.h"
#include "trainer/ranks/process_group.h"
#include "trainer/reinforcement/rollout.h"

namespace dtool::trainer {

/// Brings them to rank 0, in the order of the ranks; what the other ranks get is not to be used. A
/// collective operation.
std::vector<NamedTensor> gather_samplers(const Group& group, const Samplers& samplers,
                                         const Collector& collector);

/// Puts this rank's samplers back in place that were kept, whichever rank had them then: they are
/// known by their numbers among all ranks'. Returns how many of all ranks' go on so; the others
/// begin new episodes. None does, and nothing has changed, where the checkpoint has no samplers, or
/// they are of another seed or other settings.
std::int64_t restore_samplers(const std::vector<NamedTensor>& kept, const Group& group,
                              Samplers& samplers, Collector& collector);

}  // namespace dtool::trainer
