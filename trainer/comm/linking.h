// SPDX-License-Identifier: MIT
// How ranks are linked: addresses through the run's store, a connection for each pair, and an offer
// of shared memory if both are on one machine.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "trainer/comm/peer_link.h"
#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer {

/// Links this rank to `peers`, each of which names this rank among its own. The result is indexed
/// by rank, and null for the others. All ranks must call it, at most once per run. Throws
/// std::runtime_error if a rank misses the deadline.
std::vector<std::unique_ptr<PeerLink>> link_ranks(const Meeting& meeting, std::set<int> peers,
                                                  Deadline deadline);

}  // namespace dtool::trainer
