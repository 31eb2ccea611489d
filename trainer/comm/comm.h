// SPDX-License-Identifier: MIT
// `dtool-trainer comm`: checks and times every operation between the ranks, the library's and our
// own. dtool-trainer-worker runs it on every rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trainer/comm/exchange_plan.h"
#include "trainer/ranks/process_group.h"
#include "trainer/report/metrics.h"
#include "trainer/settings/comm_options.h"

namespace dtool::trainer {

// What `dtool-trainer comm` found, as a table and as JSON.

struct CommRow {
  Operation operation{};
  Way way = Way::library;
  std::string ranks;         ///< `all`, or `0-1` for a message
  int machines = 1;          ///< machines of those ranks
  std::int64_t bytes = 0;    ///< the bytes as nccl-tests counts them; see comm_trial.h
  double least_seconds = 0;  ///< the seconds of one operation: the mean of the fastest batch
  double median_seconds = 0;
  std::int64_t iterations = 0;  ///< the iterations of all batches together
  std::int64_t wrong = 0;       ///< wrong numbers, over all ranks
};

/// The throughput of a rank: bytes divided by the median time, in GB/s (10^9 bytes).
double algorithm_bandwidth(const CommRow& row);

/// The load on the network, independent of the number of ranks, in GB/s:
/// https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md (gather and scatter as in
/// its src/gather.cu and src/scatter.cu).
double bus_bandwidth(const CommRow& row, int world_size);

std::string table_header();
std::string table_line(const CommRow& row, int world_size);

MetricsLine metrics_line(const CommRow& row, int world_size);

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
