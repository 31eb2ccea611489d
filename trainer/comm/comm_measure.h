// The rows of `dtool-trainer comm`: each operation checked, warmed up and timed, by every rank
// together.
#pragma once

#include <functional>
#include <vector>

#include "trainer/comm/comm_report.h"
#include "trainer/comm/transport.h"
#include "trainer/ranks/process_group.h"

namespace dtool::trainer {

/// What carries what is not the library's. Each may be null where no row needs it.
struct Transports {
  Transport* links = nullptr;    ///< the messages of the way `links`
  Transport* carrier = nullptr;  ///< the messages of our algorithms
};

/// Measures what `options` ask for, the same rows on every rank. `tell` is given each on rank 0,
/// when it is done. Throws CollectiveFailed.
std::vector<CommRow> measure(const CommOptions& options, const Meeting& meeting, const Group& group,
                             const Transports& transports,
                             const std::function<void(const CommRow&)>& tell);

}  // namespace dtool::trainer
