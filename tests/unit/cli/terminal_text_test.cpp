// SPDX-License-Identifier: MIT
// Text is cut, cleaned and shortened for a terminal.
#include "cli/console.h"

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

TEST(Wrapped, LongLinesBreakAtBlanksAndGoOnIndented) {
  const auto shown = [](std::string_view text) {
    return wrapped(text, 10, [](std::string_view line, std::size_t) -> std::size_t {
      return line.starts_with("hint: ") ? 6 : 2;
    });
  };
  EXPECT_EQ(shown("ten letter\n0123456789\n"), "ten letter\n0123456789\n");
  EXPECT_EQ(shown("eleven keys and more"), "eleven\n  keys and\n  more");
  EXPECT_EQ(shown("hint: a --runs_on h1 b"), "hint: a\n      --runs_on\n      h1 b");
  EXPECT_EQ(shown("日本語 日本語"), "日本語\n  日本語");
  EXPECT_EQ(shown("\x1b[31mred\x1b[0m six si"), "\x1b[31mred\x1b[0m six si");
}

TEST(WithoutControls, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(without_controls("\x1b[31mred\x1b[0m\tand\x07 \x1b(B\x7fplain"), "red and plain");
  EXPECT_EQ(without_controls("\x1b]0;title\x07shown"), "shown");
  EXPECT_EQ(without_controls("cut\x1b["), "cut");
  EXPECT_EQ(without_controls("cut\x1b"), "cut");
  EXPECT_EQ(without_controls("größer"), "größer");
}

TEST(Printable, WhatSteersATerminalIsShown) {
  EXPECT_EQ(printable("größer, 東京 – ok", Allowed::nothing), "größer, 東京 – ok");
  EXPECT_EQ(printable("\x1b]0;x\x07\b\x7f\r", Allowed::lines), "\\x1b]0;x\\x07\\x08\\x7f\\x0d");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J\xc2\xa0",
                      Allowed::lines),
            "\\u009b2J\xc2\xa0");
  EXPECT_EQ(printable("\x9b\xff\xc3", Allowed::lines), "\\x9b\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\x9b\xe0\x82\x9b\xed\xa0\x80", Allowed::lines),
            "\\xc0\\x9b\\xe0\\x82\\x9b\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\u202e\u2066\u2069\u2070", Allowed::lines), "\\u202e\\u2066\\u2069\u2070");
}

TEST(Printable, TheStartEndsWithAWholeCharacter) {
  EXPECT_EQ(killfiles::printable_start("abc\n", 9), "abc\\x0a");
  EXPECT_EQ(killfiles::printable_words("abc\nd \r\n\n", 9), "abc\\x0ad");
  EXPECT_EQ(killfiles::printable_words("\n", 9), "");
  EXPECT_EQ(killfiles::printable_start("abcdef", 3), "abc…");
  EXPECT_EQ(killfiles::printable_start("größer", 3), "gr…");
  EXPECT_EQ(killfiles::printable_start("\x9f\x9f\x9f", 2), "…");
}

TEST(Printable, KeepsWhatItIsTold) {
  EXPECT_EQ(printable("a\tb\n", Allowed::nothing), "a\\x09b\\x0a");
  EXPECT_EQ(printable("a\tb\n", Allowed::lines), "a\tb\n");
  EXPECT_EQ(printable("\x1b[1;31mred\nplain", Allowed::lines), "\\x1b[1;31mred\nplain");
  EXPECT_EQ(printable("\x1b[1;31mred\nplain", Allowed::colored_lines),
            "\x1b[1;31mred\x1b[0m\nplain");
  EXPECT_EQ(printable("\x1b[1;31mred\x1b[2J", Allowed::bare_lines), "red\\x1b[2J");
  EXPECT_EQ(printable("\x1b[", Allowed::colored_lines), "\\x1b[");
}

TEST(AsDrawn, IsWhatStandsThereLast) {
  EXPECT_EQ(as_drawn(" 1%\r 2%\rdone\n"), "done\n");
  EXPECT_EQ(as_drawn("a\r\n"), "a\n");
  EXPECT_EQ(as_drawn("a\rb"), "b");
  EXPECT_EQ(as_drawn("\r\n"), "\n");
  EXPECT_EQ(as_drawn(""), "");
}

TEST(Length, CountsTheColumnsOfATerminal) {
  EXPECT_EQ(length("caf\xc3\xa9"), 4U);
  EXPECT_EQ(length("\xe6\xad\xa5\xe9\xaa\xa4 3"), 6U) << "wide characters";
  EXPECT_EQ(length("e\xcc\x81"), 1U) << "a mark on the letter";
  EXPECT_EQ(length("\xff\xfe"), 2U) << "no UTF-8";
  EXPECT_EQ(cut("\xe6\xad\xa5\xe9\xaa\xa4 3", 4), "\xe6\xad\xa5…");
  EXPECT_EQ(cut("\xe6\xad\xa5\xe9\xaa\xa4 3", 6), "\xe6\xad\xa5\xe9\xaa\xa4 3");
}

}  // namespace
}  // namespace dtool::cli
