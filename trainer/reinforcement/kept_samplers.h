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

enum class Restored { no, yes };

/// Puts this rank's part back in place. `no` where the checkpoint is of other ranks or samplers:
/// then nothing has changed, and they begin new episodes.
Restored restore_samplers(const std::vector<NamedTensor>& kept, const Group& group,
                          Samplers& samplers, Collector& collector);

}  // namespace dtool::trainer
