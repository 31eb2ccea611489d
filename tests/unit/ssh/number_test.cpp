// SPDX-License-Identifier: MIT
// What counts as a number in text that came from outside.
#include "ssh/number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace dtool::ssh {
namespace {

TEST(ReadNumber, TakesAllOfTheText) {
  EXPECT_EQ(read_number<int>("0"), 0);
  EXPECT_EQ(read_number<int>("-12"), -12);
  EXPECT_EQ(read_number<double>("2.5"), 2.5);
  for (const char* text : {"", " 1", "1 ", "1x", "+1", "0x1", "1.5", "1\n", "-"})
    EXPECT_EQ(read_number<int>(text), std::nullopt) << text;
}

TEST(ReadNumber, RefusesWhatDoesNotFit) {
  EXPECT_EQ(read_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(read_number<std::uint64_t>("18446744073709551616"), std::nullopt);
  EXPECT_EQ(read_number<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(read_number<int>("2147483648"), std::nullopt);
}

TEST(ReadPort, IsFrom1To65535) {
  EXPECT_EQ(read_port("1"), 1);
  EXPECT_EQ(read_port("65535"), 65535);
  EXPECT_EQ(read_port("0"), std::nullopt);
  EXPECT_EQ(read_port("65536"), std::nullopt);
  EXPECT_EQ(read_port("ssh"), std::nullopt);
}

}  // namespace
}  // namespace dtool::ssh
