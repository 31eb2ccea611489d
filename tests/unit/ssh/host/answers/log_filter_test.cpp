// SPDX-License-Identifier: MIT
// Lines are chosen by their ranks and by a pattern, however the log is cut into pieces.
#include "ssh/host/answers/log_filter.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "ssh/wire/run.h"

namespace dtool::host {
namespace {

LogRequest request(std::vector<std::int64_t> ranks, const std::string& pattern) {
  LogRequest request;
  request.ranks = std::move(ranks);
  request.pattern = {pattern};
  return request;
}

/// What is let through of the text if it comes in pieces of that size.
std::string filtered(const LogRequest& request, const LogRanks& ranks, const std::string& text,
                     std::size_t size) {
  LogFilter filter(request);
  filter.set_ranks(ranks);
  std::string passed;
  for (std::size_t at = 0; at < text.size(); at += size)
    passed += filter.add(std::string_view(text).substr(at, size));
  return passed + filter.rest();
}

TEST(LogFilter, HoweverTheLogIsCutTheSameLinesComeOut) {
  const std::string log = "r1: one\ndtool: attempt 2 begins\nr3: two\nr1: r3: three\r\nr3: four";
  const LogRanks marked{{1, 3}, true};
  for (std::size_t size = 1; size <= log.size(); ++size) {
    EXPECT_EQ(filtered(request({3}, ""), marked, log, size), "r3: two\nr3: four");
    EXPECT_EQ(filtered(request({}, "^(one|r3: three)$"), marked, log, size),
              "r1: one\nr1: r3: three\r\n");
    EXPECT_EQ(filtered(request({1, 3}, "f"), marked, log, size), "r3: four");
    EXPECT_EQ(filtered(request({}, "attempt"), marked, log, size), "dtool: attempt 2 begins\n");
  }
}

TEST(LogFilter, WithoutMarksAllLinesAreThoseOfTheOneRank) {
  const std::string log = "r3: one\ntwo\n";
  EXPECT_EQ(filtered(request({3}, ""), {{5}, false}, log, 4), "");
  EXPECT_EQ(filtered(request({5, 3}, ""), {{5}, false}, log, 4), log);
  EXPECT_EQ(filtered(request({}, "^r3"), {{5}, false}, log, 4), "r3: one\n");
}

TEST(LogFilter, ALineWithNulsIsMatchedBehindThem) {
  using namespace std::string_literals;
  EXPECT_EQ(filtered(request({}, "b$"), {}, "a\0b\n"s, 9), "a\0b\n"s);
}

TEST(LogFilter, AWrongPatternIsRefusedWithItsReason) {
  for (const std::string& wrong : {std::string("a(b"), std::string("[a"), std::string("*("),
                                   std::string(kLongestPattern + 1, 'a')})
    EXPECT_THROW(Pattern{wrong}, std::runtime_error) << wrong;
  EXPECT_TRUE(Pattern(std::string(kLongestPattern, 'a')).is_in(std::string(kLongestPattern, 'a')));
}

TEST(LogFilter, ALineWithoutAnEndIsBounded) {
  LogFilter filter(request({}, "x"));
  for (int i = 0; i < 40; ++i) {
    filter.add(std::string(64 << 10, 'x'));
    EXPECT_LE(filter.held(), LogFilter::kLongestLine);
  }
}

}  // namespace
}  // namespace dtool::host
