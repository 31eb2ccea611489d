// SPDX-License-Identifier: MIT
// How text of the host's programs is cut into lines, words, numbers and pairs.
#include "ssh/wire/words.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace dtool::host {
namespace {

TEST(CutLine, TakesALineWithoutItsEnd) {
  std::string_view text = "one\n\ntwo";
  EXPECT_EQ(cut_line(text), "one");
  EXPECT_EQ(text, "\ntwo");
  EXPECT_EQ(cut_line(text), "");
  EXPECT_EQ(text, "two");
  EXPECT_EQ(cut_line(text), "two");
  EXPECT_EQ(text, "");
  EXPECT_EQ(cut_line(text), "");
}

TEST(CutWord, TakesAWordWithoutTheBlanksBeforeIt) {
  std::string_view line = " \tone two\tthree\nfour ";
  EXPECT_EQ(cut_word(line), "one");
  EXPECT_EQ(line, " two\tthree\nfour ");
  for (const char* word : {"two", "three", "four", "", ""}) EXPECT_EQ(cut_word(line), word);
  EXPECT_EQ(line, "");
}

TEST(AsLine, HasBlanksForLineEndsAndNoneAtItsEnd) {
  EXPECT_EQ(as_line("one\ntwo\n\n"), "one two");
  EXPECT_EQ(as_line("\none "), " one ");
  EXPECT_EQ(as_line("\n"), "");
}

TEST(ParseNumber, TakesAWholeWordOrNothing) {
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535);
  for (const char* word : {"", "1x", "x1", "1 ", "+1", "65536", "-1"})
    EXPECT_FALSE(parse_number<std::uint16_t>(word)) << word;
}

TEST(NumberAmong, IsTheWordAtThatPlace) {
  EXPECT_EQ(number_among({"7", "0", "10000000"}, 0), 7);
  EXPECT_EQ(number_among({"7", "0", "10000000"}, 1), 0);
  EXPECT_EQ(number_among({"7", "0", "10000000"}, 2), 10'000'000);
  EXPECT_EQ(number_among({"7"}, 0, 7), 7);
}

TEST(NumberAmong, SaysWhichWordIsNone) {
  const auto fault = [](const std::string& word, std::size_t at, int least) -> std::string {
    try {
      number_among({word, word}, at, least);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fault("x", 0, 0), "its word 1 is not a number from 0 to 10000000");
  EXPECT_EQ(fault("1", 1, 2), "its word 2 is not a number from 2 to 10000000");
  EXPECT_EQ(fault("7", 2, 0), "its word 3 is not a number from 0 to 10000000");
  EXPECT_NE(fault("10000001", 0, 0), "");
  EXPECT_NE(fault("-1", 0, 0), "");
}

TEST(ReadPairs, SkipsLinesThatAreNone) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(read_pairs("a=1\nno pair\nb=c=d\n=x\ne=\n"),
            (Pairs{{"a", "1"}, {"b", "c=d"}, {"", "x"}, {"e", ""}}));
  EXPECT_TRUE(read_pairs("").empty());
}

}  // namespace
}  // namespace dtool::host
