// SPDX-License-Identifier: MIT
// What `dtool-trainer comm` found, as a table and as JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/report/metrics.h"
#include "trainer/settings/comm_options.h"

namespace dtool::trainer {

struct CommRow {
  Operation operation{};
  Way way;
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

}  // namespace dtool::trainer
