// What Slurm says and is told, as text.
#include "cli/launchers/slurm_text.h"

#include <gtest/gtest.h>

#include "cli/action.h"

namespace dtool::cli {
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

TEST(SlurmText, SeedsAreRangesAndSingleOnes) {
  EXPECT_EQ(parse_seeds("1-3,7"), (std::vector<std::uint64_t>{1, 2, 3, 7}));
  EXPECT_TRUE(parse_seeds("").empty());
  for (const char* bad : {"3-1", "a", "1,,2", "1,1"}) {
    EXPECT_THROW(parse_seeds(bad), UsageError) << bad;
  }
}

TEST(SlurmText, NoticeIsAQuarterOfTheTimeAndAMinuteAtMost) {
  EXPECT_EQ(notice_before_end(""), 60);
  EXPECT_EQ(notice_before_end("infinite"), 60);
  EXPECT_EQ(notice_before_end("2"), 30);
  EXPECT_EQ(notice_before_end("0:40"), 10);
  EXPECT_EQ(notice_before_end("1-0"), 60);
  EXPECT_THROW(notice_before_end("soon"), UsageError);
}

}  // namespace
}  // namespace dtool::cli
