// SPDX-License-Identifier: MIT
// Lines of several ranks stay whole, however their bytes come; redrawn lines are few.
#include "ssh/host/session/rank_logs.h"

#include <gtest/gtest.h>

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

TEST(LineMerger, LinesStayWholeHoweverTheirBytesCome) {
  LineMerger merger({3, 12});
  merger.add(0, "one", 0s);
  merger.add(1, "other\nha", 0s);
  merger.add(0, " line\n\nnext\n", 0s);
  EXPECT_EQ(merger.text(), "r12: other\nr3: one line\nr3: \nr3: next\n");
  merger.text().clear();
  merger.add(1, "lf", 0s);
  EXPECT_EQ(merger.text(), "");
  merger.end(1);
  merger.end(0);
  EXPECT_EQ(merger.text(), "r12: half\n");
}

TEST(LineMerger, OfARedrawnLineAStateNowAndThenIsKeptAndTheLast) {
  for (const bool has_return_first : {true, false}) {
    LineMerger merger({0});
    for (int percent = 0; percent <= 100; ++percent) {
      const std::string state = std::to_string(percent) + "%";
      merger.add(0, has_return_first ? "\r" + state : state + "\r", percent * 100ms);
    }
    merger.add(0, "\n", 11s);
    const std::string text = merger.text();
    EXPECT_TRUE(text.ends_with("r0: 100%\n")) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
  }
}

TEST(LineMerger, ACarriageReturnBeforeALineEndIsPartOfIt) {
  LineMerger merger({0});
  merger.add(0, "windows\r\ncut\r", 10s);
  merger.add(0, "\n", 20s);
  EXPECT_EQ(merger.text(), "r0: windows\nr0: cut\n");
}

TEST(LineMerger, ARedrawnStateIsShownOnceAnotherFollowsAndNoMoreThanEveryFiveSeconds) {
  LineMerger merger({0});
  merger.add(0, "1%\r", 100s);
  EXPECT_EQ(merger.text(), "") << "the line's end may come next";
  merger.add(0, "2%\r3%\r", 100s);
  merger.add(0, "4%\r", 105s - 1ms);
  EXPECT_EQ(merger.text(), "r0: 1%\n");
  merger.add(0, "5%\r", 105s);
  EXPECT_EQ(merger.text(), "r0: 1%\nr0: 4%\n");
  merger.add(0, "6%\r7%\r", 110s);
  EXPECT_EQ(merger.text(), "r0: 1%\nr0: 4%\nr0: 5%\n");
  merger.end(0);
  EXPECT_EQ(merger.text(), "r0: 1%\nr0: 4%\nr0: 5%\nr0: 7%\n");
}

TEST(LineMerger, StatesThatComeAtOnceAreShownOnce) {
  LineMerger merger({0});
  merger.add(0, "1%\r2%\r3%\r", 0s);
  EXPECT_EQ(merger.text(), "r0: 1%\n");
}

TEST(LineMerger, AStateOutlivesReturnsThatDrawNothing) {
  LineMerger merger({0});
  merger.add(0, "1%\r2%\r\r\n", 0s);
  EXPECT_EQ(merger.text(), "r0: 1%\nr0: 2%\n");
}

TEST(LineMerger, AWholeLineThatFollowsAStateEndsIt) {
  LineMerger merger({0});
  merger.add(0, "50%\r", 0s);
  merger.add(0, "done\n", 0s);
  merger.end(0);
  EXPECT_EQ(merger.text(), "r0: 50%\nr0: done\n");
}

TEST(LineMerger, KnowsHowManyBytesItHolds) {
  LineMerger merger({0, 1});
  EXPECT_EQ(merger.held(0), 0U);
  merger.add(0, "half", 0s);
  merger.add(0, "\r12", 0s);
  EXPECT_EQ(merger.held(0), 7U);
  EXPECT_EQ(merger.held(1), 0U);
  merger.add(0, "\n", 0s);
  EXPECT_EQ(merger.held(0), 0U);
  merger.add(0, std::string(LineMerger::kLongestLine + 7, 'x'), 0s);
  EXPECT_EQ(merger.held(0), 7U);
}

TEST(LineMerger, ALineOfTheLongestLengthIsTheSameHoweverItComes) {
  const std::string line(LineMerger::kLongestLine, 'x');
  LineMerger at_once({0});
  at_once.add(0, line + "\n", 0s);
  LineMerger in_parts({0});
  in_parts.add(0, line.substr(1), 0s);
  in_parts.add(0, "x\n", 0s);
  EXPECT_TRUE(at_once.text() == in_parts.text());
}

TEST(LineMerger, ALineWithoutAnEndIsBounded) {
  LineMerger merger({0});
  const std::string kibibyte(1024, 'x');
  std::size_t longest = 0;
  std::size_t size = 0;
  for (std::size_t i = 0; i < 3 * LineMerger::kLongestLine / 1024; ++i) {
    merger.add(0, kibibyte, 0s);
    longest = std::max(longest, merger.text().size());
    size += merger.text().size();
    merger.text().clear();
  }
  EXPECT_LE(longest, LineMerger::kLongestLine + 10);
  EXPECT_EQ(size, 3 * (LineMerger::kLongestLine + 5));
  merger.add(0, std::string(2 * LineMerger::kLongestLine, 'y') + "\n", 0s);
  EXPECT_EQ(merger.text().size(), 2 * (LineMerger::kLongestLine + 5) + 5);
}

}  // namespace
}  // namespace dtool::host
