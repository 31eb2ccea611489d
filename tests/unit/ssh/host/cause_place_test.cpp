// SPDX-License-Identifier: MIT
// Which machine and rank a cause names, as the file has it.
#include "ssh/host/explaining_line.h"

#include <gtest/gtest.h>

namespace dtool::host {
namespace {

TEST(CausePlace, IsReadAsItWasWritten) {
  for (const CausePlace& each :
       {CausePlace{0, std::nullopt}, CausePlace{0, 0}, CausePlace{3, 12}, CausePlace{1, 1}})
    EXPECT_EQ(parse_cause_place(to_line(each)), each) << to_line(each);
  EXPECT_EQ(to_line({3, 12}), "3 12");
  EXPECT_EQ(to_line({3, std::nullopt}), "3");
}

TEST(CausePlace, WithoutARankIsOfItsMachine) {
  for (const char* each : {"2", "2 x", "2 -1"})
    EXPECT_EQ(parse_cause_place(each), (CausePlace{2, std::nullopt})) << each;
}

TEST(CausePlace, WithoutAMachineIsNone) {
  for (const char* each : {"", "x", "-1", "-1 2", "x 2"})
    EXPECT_EQ(parse_cause_place(each), std::nullopt) << each;
}

}  // namespace
}  // namespace dtool::host
