// SPDX-License-Identifier: MIT
// Rows of `dtool-trainer comm` as curves.
#include "cli/plot/plot_sources.h"

#include <gtest/gtest.h>

#include "cli/plot/panel.h"

namespace dtool::cli {
namespace {

std::string row(const char* operation, const char* algorithm, const char* ranks, int machines,
                int bytes, double seconds) {
  return R"({"operation": ")" + std::string(operation) + R"(", "algorithm": ")" + algorithm +
         R"(", "ranks": ")" + ranks + R"(", "machines": )" + std::to_string(machines) +
         R"(, "bytes": )" + std::to_string(bytes) + R"(, "median_seconds": )" +
         std::to_string(seconds) + R"(, "bus_gb_per_s": 2})" + "\n";
}

TEST(CommRows, AreACurveForEachAlgorithmAndOperation) {
  const auto algorithms = read_comm_rows(
      row("all_reduce", "ring", "all", 2, 4, 0.001) + row("all_reduce", "ring", "all", 2, 16, 0.5) +
      row("send_recv", "links", "0-2", 2, 4, 1) + row("send_recv", "links", "0-1", 1, 4, 1));
  ASSERT_EQ(algorithms.size(), 2U);
  EXPECT_EQ(algorithms[0].first, "ring");
  const Curve& time = algorithms[0].second.curves.at(0);
  EXPECT_EQ(time.metric, "all_reduce_us");
  EXPECT_EQ(time.steps, (std::vector<double>{4, 16}));
  EXPECT_EQ(time.values, (std::vector<double>{1000, 500000}));
  EXPECT_EQ(algorithms[0].second.curves.at(1).metric, "all_reduce_gb_per_s");
  EXPECT_EQ(algorithms[1].second.curves.at(0).metric, "send_recv_2_machines_us");
  EXPECT_EQ(algorithms[1].second.curves.at(2).metric, "send_recv_us");
}

TEST(CommRows, OtherLinesAreNone) {
  EXPECT_TRUE(read_comm_rows("").empty());
  EXPECT_TRUE(read_comm_rows("[1\n{}\n{\"event\": \"step\", \"step\": 1}\n").empty());
  EXPECT_TRUE(read_comm_rows(row("barrier", "library", "all", 1, 0, 1)).empty());
  EXPECT_TRUE(read_comm_rows(R"({"operation": 1, "algorithm": 2, "bytes": "x"})").empty());
}

TEST(CommRows, AreDrawnOverALogarithmicAxisOfBytes) {
  const auto algorithms = read_comm_rows(row("all_reduce", "ring", "all", 1, 1024, 0.001) +
                                         row("all_reduce", "ring", "all", 1, 1048576, 0.1));
  const auto panel = make_panel("all_reduce_us", {algorithms[0].second}, {}, XAxis::bytes);
  ASSERT_TRUE(panel.has_value());
  const std::string script = gnuplot_script({.names = {"ring"}, .panels = {*panel}});
  EXPECT_NE(script.find("xlabel 'bytes'"), script.npos) << script;
  EXPECT_NE(script.find("\nset logscale x\n"), script.npos) << script;
}

}  // namespace
}  // namespace dtool::cli
