// SPDX-License-Identifier: MIT
#include "trainer/settings/comm_options.h"

#include <gtest/gtest.h>

#include "trainer/settings/usage_error.h"

using namespace dtool::trainer;

namespace {

using Sizes = std::vector<std::int64_t>;

std::string mistake_of(const char* sizes) {
  try {
    parse_sizes(sizes);
    return "none";
  } catch (const UsageError& mistake) {
    return mistake.what();
  }
}

}  // namespace

TEST(CommOptions, SizesAreListsAndRanges) {
  EXPECT_EQ(parse_sizes("4"), (Sizes{4}));
  EXPECT_EQ(parse_sizes("1k-16k"), (Sizes{1024, 4096, 16384}));
  EXPECT_EQ(parse_sizes("1k-15k"), (Sizes{1024, 4096}));
  EXPECT_EQ(parse_sizes("2M,159040,1K,1k"), (Sizes{1024, 159040, 2 << 20}));
  EXPECT_EQ(parse_sizes("4G"), (Sizes{std::int64_t{4} << 30}));
}

TEST(CommOptions, ImpossibleSizesAreNamed) {
  for (const char* text : {"", "k", "3", "-1", "5G", "1k-", "1x", "1 k", "99999999999999999999"}) {
    EXPECT_NE(mistake_of(text).find("--sizes"), std::string::npos) << text;
  }
  EXPECT_EQ(mistake_of("2k-1k"), "--sizes: '2k-1k' begins above its end");
}

TEST(CommOptions, APrimitiveMeansItsPair) {
  EXPECT_EQ(parse_operations("recv,send,all_reduce,isend"),
            (std::vector{Operation::send_recv, Operation::isend_irecv, Operation::all_reduce}));
  EXPECT_THROW(parse_operations("allreduce"), UsageError);
  EXPECT_THROW(parse_operations("all_reduce,"), UsageError);
}

TEST(CommOptions, EveryAlgorithmHasItsRowsAndNoOthers) {
  const auto ways = parse_ways("library,links,ring,doubling");
  ASSERT_EQ(ways.size(), 4U);
  const auto rows = [&](Operation operation) {
    std::string names;
    for (const Way& each : ways) {
      if (can_do(operation, each)) names += std::string(to_string(each)) + ' ';
    }
    return names;
  };
  EXPECT_EQ(rows(Operation::send_recv), "library links ");
  EXPECT_EQ(rows(Operation::reduce), "library ");
  EXPECT_EQ(rows(Operation::all_reduce), "library ring doubling ");
  EXPECT_EQ(rows(Operation::gather), "library ");
}
