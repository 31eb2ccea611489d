// SPDX-License-Identifier: MIT
// The rows of `dtool-trainer comm`. All ranks together check, warm up and time each operation.
#pragma once

#include <functional>
#include <vector>

#include "trainer/comm/comm_report.h"
#include "trainer/comm/transport.h"
#include "trainer/ranks/process_group.h"

namespace dtool::trainer {

/// The transports other than the library's own operations. Each may be null if no row needs it.
struct Transports {
  Transport* links = nullptr;    ///< for the way `links`
  Transport* carrier = nullptr;  ///< for our algorithms
};

/// Measures what `options` ask for, the same rows on every rank. On rank 0, `tell` gets each row
/// when it is done. Throws CollectiveFailed.
std::vector<CommRow> measure(const CommOptions& options, const Meeting& meeting, const Group& group,
                             const Transports& transports,
                             const std::function<void(const CommRow&)>& tell);

}  // namespace dtool::trainer
