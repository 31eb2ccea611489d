// SPDX-License-Identifier: MIT
// Shell text that gives variables their values.
#include "cli/assignments.h"

#include <gtest/gtest.h>

#include "tests/unit/syntax.h"

namespace dtool::cli {
namespace {

TEST(Assignments, NamesTheValuesOfAShortArrayOneByOne) {
  EXPECT_EQ(assign_array("slots", {"2", "2", "a b"}), "slots=(2 2 'a b')\n");
  EXPECT_EQ(assign_array("none", {}), "none=()\n");
}

TEST(Assignments, CountsEqualValuesOfALongArray) {
  std::vector<std::string> values(1000, "8");
  values.push_back("it's");
  values.insert(values.end(), 20, "");
  const std::string text = assign_array("slots", values);
  EXPECT_LT(text.size(), 200);
  EXPECT_EQ(
      tests::run_bash(text + "printf '%s|' \"${#slots[@]}\" \"${slots[0]}\" \"${slots[999]}\" "
                             "\"${slots[1000]}\" \"${slots[1020]-unset}\""),
      "1021|8|8|it's||");
}

}  // namespace
}  // namespace dtool::cli
