// SPDX-License-Identifier: MIT
// --since takes lengths of time and times in the past, and nothing else.
#include "cli/options.h"

#include <gtest/gtest.h>

#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

constexpr std::time_t kNow = 1'795'600'800;  // 2026-11-25T12:40:00Z, wherever the test runs

std::int64_t seconds(const std::string& text) {
  const auto since = parse_since(text, kNow);
  return since ? since->count() : -1;
}

TEST(Since, TakesLengthsOfTime) {
  EXPECT_EQ(seconds("30s"), 30);
  EXPECT_EQ(seconds("10m"), 600);
  EXPECT_EQ(seconds("2h"), 7200);
  EXPECT_EQ(seconds("3d"), 259200);
  EXPECT_EQ(seconds("0s"), 0);
}

TEST(Since, TakesTimesInThePast) {
  std::tm now{};
  ::gmtime_r(&kNow, &now);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &now);
  EXPECT_EQ(seconds(text), 0);
  const std::time_t before = kNow - 3661;
  ::gmtime_r(&before, &now);
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &now);
  EXPECT_EQ(seconds(text), 3661);
  ::localtime_r(&before, &now);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &now);
  EXPECT_EQ(seconds(text), 3661);
}

TEST(Since, RefusesWhatIsNoTimeOrLiesAhead) {
  for (const char* text : {"", "m", "10", "10 m", "-5m", "1.5h", "10w", "soon", "2026-13-01",
                           "2026-11-31", "25:00", "2099-01-01", "99999999999d", "2026-11-25T1x"})
    EXPECT_EQ(seconds(text), -1) << text;
}

}  // namespace
}  // namespace dtool::cli
