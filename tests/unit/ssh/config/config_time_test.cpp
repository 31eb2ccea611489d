// SPDX-License-Identifier: MIT
// OpenSSH's times.
#include "ssh/config/config_block.h"

#include <gtest/gtest.h>

#include <string>

namespace dtool::ssh {
namespace {

using std::chrono::seconds;

TEST(ConfigTime, AddsNumbersWithTheirUnits) {
  EXPECT_EQ(read_config_time("0"), seconds(0));
  EXPECT_EQ(read_config_time("90"), seconds(90));
  EXPECT_EQ(read_config_time("1m30s"), seconds(90));
  EXPECT_EQ(read_config_time("1M30"), seconds(90));
  EXPECT_EQ(read_config_time("2h"), seconds(7200));
  EXPECT_EQ(read_config_time("1w1d"), seconds(8 * 24 * 3600));
}

TEST(ConfigTime, IsNothingForOtherText) {
  for (const std::string text : {"", "s", "-1", "+1", "1x", "1 m", "1.5", "m1", "none",
                                 "99999999999999999999", "5000000w", "400d"}) {
    EXPECT_EQ(read_config_time(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace dtool::ssh
