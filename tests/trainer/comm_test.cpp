// SPDX-License-Identifier: MIT
// The measurement on real ranks, that a number that is wrong is counted, and the report.
#include "trainer/comm/comm.h"

#include "tests/trainer/ranks.h"
#include "trainer/comm/comm_trial.h"
#include "trainer/comm/links.h"
#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

constexpr auto kTimeout = std::chrono::seconds(60);

/// Spoils one number of the first message that comes, after the last has come.
class SpoilingTransport : public Transport {
 public:
  explicit SpoilingTransport(Transport& transport) : transport_(transport) {}

  void perform(const Plan& plan, float* tensor) override {
    transport_.perform(plan, tensor);
    for (const Round& each : plan) {
      if (each.receive_from == kNobody || each.receive.size() == 0) continue;
      tensor[each.receive.begin] += 1;
      return;
    }
  }

 private:
  Transport& transport_;
};

CommOptions quick(const char* operations, const char* ways) {
  CommOptions options;
  options.sizes = {4, 4096, 159040};
  options.operations = parse_operations(operations);
  options.ways = parse_ways(ways);
  options.repeats = 1;
  options.iterations = 2;
  return options;
}

std::int64_t wrong_in(const std::vector<CommRow>& rows) {
  std::int64_t wrong = 0;
  for (const CommRow& each : rows) wrong += each.wrong;
  return wrong;
}

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

TEST(CommMeasure, EveryOperationIsRightInEveryWay) {
  for (int size = 2; size <= 5; ++size) {
    on_every_rank(size, Machines::one, [&](const Meeting& meeting) {
      const Group group = make_group(meeting, Backend::gloo, kTimeout);
      Links links(meeting, kTimeout);
      CommOptions options;
      options.sizes = {4, 4096, 159040};
      options.repeats = 1;
      options.iterations = 2;
      const auto rows = measure(options, meeting, group, {&links, &links}, [](const CommRow&) {});
      EXPECT_EQ(wrong_in(rows), 0);
      // Messages 2 x 2 ways, broadcast, reduce, all_reduce 5, gather, all_gather, scatter.
      EXPECT_EQ(rows.size(), 3U * (4 + 1 + 1 + 5 + 3) + 1);
    });
  }
}

TEST(CommMeasure, AlgorithmsRunOnTheLibrarysMessagesToo) {
  on_every_rank(3, Machines::one, [&](const Meeting& meeting) {
    const Group group = make_group(meeting, Backend::gloo, kTimeout);
    LibraryTransport library(group);
    const auto rows = measure(quick("all_reduce", "ring,pairwise,halving_doubling,doubling"),
                              meeting, group, {nullptr, &library}, [](const CommRow&) {});
    EXPECT_EQ(wrong_in(rows), 0);
    EXPECT_EQ(rows.size(), 3U * 4);
  });
}

TEST(CommMeasure, AMessageBetweenMachinesIsARowOfItsOwn) {
  on_every_rank(2, Machines::one_a_rank, [&](const Meeting& meeting) {
    const Group group = make_group(meeting, Backend::gloo, kTimeout);
    const auto rows =
        measure(quick("send_recv", "library"), meeting, group, {}, [](const CommRow&) {});
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(rows[0].machines, 2);
    EXPECT_EQ(rows[0].ranks, "0-1");
  });
}

TEST(CommMeasure, SpoiltNumbersAreCountedOnEveryRank) {
  on_every_rank(2, Machines::one, [&](const Meeting& meeting) {
    const Group group = make_group(meeting, Backend::gloo, kTimeout);
    Links links(meeting, kTimeout);
    SpoilingTransport spoiling(links);
    for (const char* way : {"ring", "pairwise", "halving_doubling", "doubling"}) {
      const auto rows = measure(quick("all_reduce", way), meeting, group, {&spoiling, &spoiling},
                                [](const CommRow&) {});
      for (const CommRow& each : rows) EXPECT_GT(each.wrong, 0) << way << ' ' << each.bytes;
    }
    const auto rows = measure(quick("send_recv,isend_irecv", "links"), meeting, group,
                              {&spoiling, &spoiling}, [](const CommRow&) {});
    for (const CommRow& each : rows) EXPECT_GT(each.wrong, 0) << each.bytes;
  });
}

TEST(CommMeasure, OnGpusOnlyTheLibraryIsMeasuredAndOursAreNotReplacedByIt) {
  const at::Device gpu(at::kCUDA, 0);
  EXPECT_EQ(possible_ways(CommOptions().ways, gpu), parse_ways("library"));
  EXPECT_THROW(possible_ways(parse_ways("ring,links"), gpu), UsageError);
  EXPECT_EQ(possible_ways(parse_ways("ring,links"), at::kCPU), parse_ways("ring,links"));
}

TEST(CommTrial, WhatIsNotWrittenIsWrong) {
  const Slot slot{at::zeros({10}), {}, pattern_of(1)};
  fill({slot});
  EXPECT_EQ(count_wrong(slot), 10);
  const Slot right{slot.tensor, pattern_of(1), pattern_of(1)};
  fill({right});
  EXPECT_EQ(count_wrong(right), 0);
  right.tensor[3] += 1;
  EXPECT_EQ(count_wrong(right), 1);
}

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
