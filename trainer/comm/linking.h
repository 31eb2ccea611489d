// SPDX-License-Identifier: MIT
// How ranks are linked: addresses through the run's store, a connection for each pair, and an offer
// of shared memory if both are on one machine.
#pragma once

#include <memory>
#include <vector>

#include "trainer/comm/peer_link.h"
#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer {

/// Links this rank to every other; the result is indexed by rank and null at its own index. All
/// ranks must call it, at most once per run. Throws std::runtime_error if a rank misses the
/// deadline.
std::vector<std::unique_ptr<PeerLink>> link_ranks(const Meeting& meeting, Deadline deadline);

}  // namespace dtool::trainer
