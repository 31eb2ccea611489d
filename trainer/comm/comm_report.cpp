// SPDX-License-Identifier: MIT
// Formats the rows as text.
#include "trainer/comm/comm_report.h"

#include <fmt/format.h>

namespace dtool::trainer {
double algorithm_bandwidth(const CommRow& row) {
  return row.median_seconds > 0 ? static_cast<double>(row.bytes) / row.median_seconds / 1e9 : 0;
}

double bus_bandwidth(const CommRow& row, int world_size) {
  const double others = static_cast<double>(world_size - 1) / world_size;
  switch (row.operation) {
    case Operation::all_reduce:
      return algorithm_bandwidth(row) * 2 * others;
    case Operation::gather:
    case Operation::all_gather:
    case Operation::scatter:
      return algorithm_bandwidth(row) * others;
    default:
      return algorithm_bandwidth(row);
  }
}

std::string table_header() {
  return fmt::format("{:<12} {:<17} {:>5} {:>8} {:>10} {:>10} {:>10} {:>8} {:>8} {:>6}\n",
                     "operation", "algorithm", "ranks", "machines", "bytes", "min us", "median us",
                     "alg GB/s", "bus GB/s", "#wrong");
}

std::string table_line(const CommRow& row, int world_size) {
  const auto bandwidth = [&](double value) {
    return row.bytes == 0 ? std::string("-") : fmt::format("{:.3f}", value);
  };
  return fmt::format("{:<12} {:<17} {:>5} {:>8} {:>10} {:>10.1f} {:>10.1f} {:>8} {:>8} {:>6}\n",
                     to_string(row.operation), to_string(row.way), row.ranks, row.machines,
                     row.bytes, row.least_seconds * 1e6, row.median_seconds * 1e6,
                     bandwidth(algorithm_bandwidth(row)), bandwidth(bus_bandwidth(row, world_size)),
                     row.wrong);
}

MetricsLine metrics_line(const CommRow& row, int world_size) {
  return {{"operation", std::string(to_string(row.operation))},
          {"algorithm", std::string(to_string(row.way))},
          {"ranks", row.ranks},
          {"machines", std::int64_t{row.machines}},
          {"bytes", row.bytes},
          {"min_seconds", row.least_seconds},
          {"median_seconds", row.median_seconds},
          {"iterations", row.iterations},
          {"algorithm_gb_per_s", algorithm_bandwidth(row)},
          {"bus_gb_per_s", bus_bandwidth(row, world_size)},
          {"wrong", row.wrong}};
}

}  // namespace dtool::trainer
