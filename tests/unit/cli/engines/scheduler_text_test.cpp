// SPDX-License-Identifier: MIT
// What schedulers share of a request, as text.
#include "cli/engines/scheduler.h"

#include <gtest/gtest.h>

#include "cli/action.h"

namespace dtool::cli {
namespace {

TEST(SchedulerText, SeedsAreRangesAndSingleOnes) {
  EXPECT_EQ(parse_seeds("1-3,7"), (std::vector<std::uint64_t>{1, 2, 3, 7}));
  EXPECT_TRUE(parse_seeds("").empty());
  for (const char* bad : {"3-1", "a", "1,,2", "1,1"}) {
    EXPECT_THROW(parse_seeds(bad), UsageError) << bad;
  }
}

TEST(SchedulerText, NoticeIsAQuarterOfTheTimeAndAMinuteAtMost) {
  EXPECT_EQ(notice_before_end(""), 60);
  EXPECT_EQ(notice_before_end("infinite"), 60);
  EXPECT_EQ(notice_before_end("2"), 30);
  EXPECT_EQ(notice_before_end("0:40"), 10);
  EXPECT_EQ(notice_before_end("1-0"), 60);
  EXPECT_THROW(notice_before_end("soon"), UsageError);
}

TEST(NoticeBeforeEnd, IsAQuarterOfAShortTimeAndAMinuteAtMost) {
  EXPECT_EQ(notice_before_end(""), 60);
  EXPECT_EQ(notice_before_end("1"), 15);
  EXPECT_EQ(notice_before_end("2:00"), 30);
  for (const char* time : {"4", "60", "1:00:00", "1-0", "2-12:30", "1-00:00:30", "UNLIMITED", "0"})
    EXPECT_EQ(notice_before_end(time), 60) << time;
  for (const char* time : {"soon", "1h", "1:2:3:4", "-5", " 5", "5 ", "1-", ":5"})
    EXPECT_THROW(notice_before_end(time), UsageError) << time;
}

TEST(ProcessesOfNode, AreWhatSaysMost) {
  EXPECT_EQ(processes_of_node("", "auto", ""), 1);
  EXPECT_EQ(processes_of_node("", "auto", "4"), 4);
  EXPECT_EQ(processes_of_node("", "auto", "a100:8"), 8);
  EXPECT_EQ(processes_of_node("", "3", "a100:8"), 3);
  EXPECT_EQ(processes_of_node("2", "auto", "a100:8"), 2);
  EXPECT_THROW(processes_of_node("2", "2", ""), UsageError);
}

TEST(ParseSeeds, TakesRangesAndLists) {
  using Seeds = std::vector<std::uint64_t>;
  EXPECT_EQ(parse_seeds(""), Seeds());
  EXPECT_EQ(parse_seeds("5"), Seeds({5}));
  EXPECT_EQ(parse_seeds("1-3,7,10-11"), Seeds({1, 2, 3, 7, 10, 11}));
  EXPECT_EQ(parse_seeds("0-999").size(), 1000U);
  const std::string most = "18446744073709551615";
  EXPECT_EQ(parse_seeds(most).front(), 18446744073709551615U);
  EXPECT_EQ(parse_seeds("18446744073709551614-" + most).size(), 2U);
  for (const std::string text : {"x", "1,", ",1", "3-1", "1-", "-1", "1,1", "1-3,2", "0-1000",
                                 "0-18446744073709551615", "18446744073709551616", "1 2", "1.5"})
    EXPECT_THROW(parse_seeds(text), UsageError) << text;
}

}  // namespace
}  // namespace dtool::cli
