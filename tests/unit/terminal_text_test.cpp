// Text is cut, cleaned and shortened for a terminal.
#include "cli/terminal_text.h"

#include <gtest/gtest.h>

namespace dtool::cli {
namespace {

TEST(Counted, TheNounHasTheFormThatTheNumberAsksFor) {
  EXPECT_EQ(counted(1, "host"), "1 host");
  EXPECT_EQ(counted(0, "host"), "0 hosts");
  EXPECT_EQ(counted(2, "process"), "2 processes");
  EXPECT_EQ(counted(1, "process"), "1 process");
}

TEST(DurationText, DurationsHaveTwoParts) {
  EXPECT_EQ(duration_text(-3), "0s");
  EXPECT_EQ(duration_text(59), "59s");
  EXPECT_EQ(duration_text(200), "3m 20s");
  EXPECT_EQ(duration_text(7500), "2h 05m");
  EXPECT_EQ(duration_text(3 * 86400 + 4 * 3600), "3d 04h");
}

TEST(Cut, TextIsCutBetweenCharacters) {
  EXPECT_EQ(cut("größer", 6), "größer");
  EXPECT_EQ(cut("größer", 4), "grö…");
  EXPECT_EQ(cut("größer", 1), "…");
  EXPECT_EQ(cut("größer", 0), "");
}

TEST(WithoutControls, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(without_controls("\x1b[31mred\x1b[0m\tand\x07 \x1b(B\x7fplain"), "red and plain");
  EXPECT_EQ(without_controls("\x1b]0;title\x07shown"), "shown");
  EXPECT_EQ(without_controls("cut\x1b["), "cut");
  EXPECT_EQ(without_controls("cut\x1b"), "cut");
  EXPECT_EQ(without_controls("größer"), "größer");
}

}  // namespace
}  // namespace dtool::cli
