// SPDX-License-Identifier: MIT
// `dtool-trainer comm`: checks and times every operation between the ranks, the library's and our
// own. dtool-trainer-worker runs it on every rank.
#pragma once

#include <functional>
#include <vector>

#include "trainer/comm/comm_report.h"
#include "trainer/comm/exchange_plan.h"
#include "trainer/ranks/process_group.h"
#include "trainer/settings/comm_options.h"

namespace dtool::trainer {

/// Runs the whole command on this rank: measures, and on rank 0 prints and writes the files. Throws
/// UsageError if there is only one rank, std::runtime_error if a result was wrong.
void run_comm(const CommOptions& options, const Meeting& meeting, const Group& group);

// The rows of `dtool-trainer comm`. All ranks together check, warm up and time each operation.

/// The transports other than the library's own operations. Each may be null if no row needs it.
struct Transports {
  Transport* links = nullptr;    ///< the transport for the way `links`
  Transport* carrier = nullptr;  ///< the transport for our algorithms
};

/// Those of the wanted ways that there are on `device`: on GPUs only the library's. Throws
/// UsageError if none is left.
std::vector<Way> possible_ways(const std::vector<Way>& wanted, at::Device device);

/// Measures what `options` ask for, the same rows on every rank. On rank 0, `tell` gets each row
/// when it is done. Throws CollectiveFailed.
std::vector<CommRow> measure(const CommOptions& options, const Meeting& meeting, const Group& group,
                             const Transports& transports,
                             const std::function<void(const CommRow&)>& tell);

}  // namespace dtool::trainer
