// A process that a launcher starts: what Slurm says of its node.
#include "cli/run/host/rank.h"

#include <gtest/gtest.h>

namespace dtool::host {
namespace {

using Counts = std::vector<int>;

TEST(SlurmText, TasksOfEachNodeAreReadAsSlurmWritesThem) {
  EXPECT_EQ(parse_tasks_per_node("2(x3)"), (Counts{2, 2, 2}));
  EXPECT_EQ(parse_tasks_per_node("4,1(x2),3"), (Counts{4, 1, 1, 3}));
  EXPECT_EQ(parse_tasks_per_node("0,2"), (Counts{1, 2}));
  for (const char* nothing :
       {"", "two", "2(x)", "2(x-1)", "2(x99999999)", "99999999999999999999"}) {
    EXPECT_EQ(parse_tasks_per_node(nothing), Counts{}) << nothing;
  }
}

}  // namespace
}  // namespace dtool::host
