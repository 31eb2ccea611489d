// SPDX-License-Identifier: MIT
#include "trainer/comm/comm_report.h"

#include <gtest/gtest.h>

using namespace dtool::trainer;

namespace {

CommRow row_of(Operation operation) {
  CommRow row;
  row.operation = operation;
  row.ranks = "all";
  row.bytes = 1'000'000;
  row.least_seconds = 0.0005;
  row.median_seconds = 0.001;
  row.iterations = 110;
  return row;
}

}  // namespace

TEST(CommReport, BandwidthsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(row_of(Operation::all_reduce)), 1.0);
  EXPECT_DOUBLE_EQ(bus_bandwidth(row_of(Operation::all_reduce), 4), 2 * 3.0 / 4);
  for (const auto each : {Operation::all_gather, Operation::gather, Operation::scatter}) {
    EXPECT_DOUBLE_EQ(bus_bandwidth(row_of(each), 4), 3.0 / 4);
  }
  for (const auto each :
       {Operation::send_recv, Operation::isend_irecv, Operation::broadcast, Operation::reduce}) {
    EXPECT_DOUBLE_EQ(bus_bandwidth(row_of(each), 4), 1.0);
  }
}

TEST(CommReport, ALineHasAValueForEachHeading) {
  const auto words = [](const std::string& line) {
    std::size_t count = 0;
    for (std::size_t i = 1; i < line.size(); ++i) count += line[i] != ' ' && line[i - 1] == ' ';
    return count + 1;
  };
  // `min us`, `median us`, `alg GB/s` and `bus GB/s` are two words each.
  EXPECT_EQ(words(table_line(row_of(Operation::reduce), 2)), words(table_header()) - 4);
  EXPECT_EQ(table_line(row_of(Operation::reduce), 2).size(), table_header().size());
}

TEST(CommReport, JsonNamesEverything) {
  EXPECT_EQ(to_json(metrics_line(row_of(Operation::reduce), 2)),
            R"({"operation": "reduce", "algorithm": "library", "ranks": "all", "machines": 1, )"
            R"("bytes": 1000000, "min_seconds": 0.0005, "median_seconds": 0.001, )"
            R"("iterations": 110, "algorithm_gb_per_s": 1, "bus_gb_per_s": 1, "wrong": 0})");
}
