// What `dtool-trainer comm` found, as a table and as JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/comm/comm_options.h"
#include "trainer/report/metrics.h"

namespace dtool::trainer {

struct CommRow {
  Operation operation{};
  Way way;
  std::string ranks;         ///< `all`, or `0-1` of a message
  int machines = 1;          ///< that those ranks are on
  std::int64_t bytes = 0;    ///< as nccl-tests counts them; see comm_trial.h
  double least_seconds = 0;  ///< of one operation: the fastest batch's mean
  double median_seconds = 0;
  std::int64_t iterations = 0;  ///< of all batches together
  std::int64_t wrong = 0;       ///< numbers, over all ranks
};

/// What a rank gets through: bytes by the median time. In GB/s, of 10^9 bytes.
double algorithm_bandwidth(const CommRow& row);

/// What the wires must carry for it, whatever the number of ranks:
/// https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md (gather and scatter as in
/// its src/gather.cu and src/scatter.cu). In GB/s.
double bus_bandwidth(const CommRow& row, int world_size);

std::string table_header();
std::string table_line(const CommRow& row, int world_size);

MetricsLine metrics_line(const CommRow& row, int world_size);

}  // namespace dtool::trainer
