// How ranks are linked: addresses through the run's store, a connection for each pair, and an offer
// of shared memory where both are on one machine.
#pragma once

#include <memory>
#include <vector>

#include "trainer/comm/peer_link.h"
#include "trainer/ranks/rendezvous.h"

namespace dtool::trainer {

/// Links this rank to every other, by rank; null at its own place. All ranks must call it, and no
/// oftener than once a run. Throws std::runtime_error when one does not by the deadline.
std::vector<std::unique_ptr<PeerLink>> link_ranks(const Meeting& meeting, Deadline deadline);

}  // namespace dtool::trainer
