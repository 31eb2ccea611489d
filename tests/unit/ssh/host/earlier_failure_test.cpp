// SPDX-License-Identifier: MIT
// What a failed attempt leaves for those who ask later.
#include "ssh/host/explaining_line.h"

#include <gtest/gtest.h>

namespace dtool::host {
namespace {

TEST(EarlierFailure, IsReadAsItWasWritten) {
  for (const EarlierFailure& each : {EarlierFailure{0, 0, std::nullopt, "sick"},
                                     EarlierFailure{3, 12, CausePlace{1, std::nullopt}, "a b"},
                                     EarlierFailure{3, 12, CausePlace{1, 7}, "0 1 2"}})
    EXPECT_EQ(parse_earlier_failure(to_text(each)), each) << to_text(each);
}

TEST(EarlierFailure, AMalformedFileTellsNothing) {
  for (const char* each :
       {"", "0", "0 5", "0 5 1 2", "0 5\n", "x 5\nsick", "0 x\nsick", "-1 5\nsick", "0 -5\nsick"})
    EXPECT_EQ(parse_earlier_failure(each), std::nullopt) << each;
}

}  // namespace
}  // namespace dtool::host
