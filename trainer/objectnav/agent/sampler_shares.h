// SPDX-License-Identifier: MIT
// Which of a run's samplers each rank has.
#pragma once

#include <vector>

#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/ranks/rendezvous.h"
#include "trainer/reinforcement/mini_batches.h"

namespace dtool::trainer {

/// The samplers of each rank, by rank: global numbers that follow each other. `members` are all
/// ranks, or nobody for a group of one.
std::vector<SamplerRange> shares_of(const std::vector<Member>& members,
                                    const ObjectNavSettings& settings);

/// The number of samplers of all ranks.
std::int64_t count_all(const std::vector<SamplerRange>& shares);

/// The same ranks as nodes of the tutorial.
Nodes nodes_of(const std::vector<Member>& members, const ObjectNavSettings& settings);

}  // namespace dtool::trainer
