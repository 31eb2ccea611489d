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

TEST(Cut, TakesAllOfATextWithoutTheEnd) {
  std::string_view text = "a::b";
  EXPECT_EQ(cut(text, ':'), "a");
  EXPECT_EQ(cut(text, ':'), "");
  EXPECT_EQ(cut(text, ':'), "b");
  EXPECT_TRUE(text.empty());
}

TEST(Split, KeepsEmptyParts) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("", ','), Parts{""});
  EXPECT_EQ(split("a", ','), Parts{"a"});
  EXPECT_EQ(split(",a,,b,", ','), (Parts{"", "a", "", "b", ""}));
}

TEST(LastLine, IsTheLastThatSaysSomething) {
  EXPECT_EQ(last_line(""), "");
  EXPECT_EQ(last_line("a\n  b \r\n\r\n \n"), "  b");
  EXPECT_EQ(last_line("fault\nWARNING: old", "WARNING"), "fault");
}

TEST(ReadPairs, SkipsLinesThatAreNone) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(read_pairs("a=1\nno pair\nb=c=d\n=x\ne=\n"),
            (Pairs{{"a", "1"}, {"b", "c=d"}, {"", "x"}, {"e", ""}}));
  EXPECT_TRUE(read_pairs("").empty());
}

TEST(ParseNumber, TakesAllOfTheText) {
  EXPECT_EQ(parse_number<int>("0"), 0);
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<double>("2.5"), 2.5);
  for (const char* text : {"", " 1", "1 ", "1x", "+1", "0x1", "1.5", "1\n", "-"})
    EXPECT_EQ(parse_number<int>(text), std::nullopt) << text;
}

TEST(ParseNumber, RefusesWhatDoesNotFit) {
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<int>("2147483648"), std::nullopt);
}

TEST(ParsePort, IsFrom1To65535) {
  EXPECT_EQ(parse_port("1"), 1);
  EXPECT_EQ(parse_port("65535"), 65535);
  EXPECT_EQ(parse_port("0"), std::nullopt);
  EXPECT_EQ(parse_port("65536"), std::nullopt);
  EXPECT_EQ(parse_port("ssh"), std::nullopt);
}

}  // namespace
}  // namespace dtool::host
