// SPDX-License-Identifier: MIT
// Programs that are run for what they say.
#include "ssh/machine/run_to_end.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace dtool::ssh {
namespace {

TEST(RunToEnd, TellsExitCodeAndAllOutput) {
  const auto written =
      run_to_end({"sh", "-c", "head -c 300000 /dev/zero; echo bad >&2; cat; exit 3"});
  ASSERT_TRUE(written);
  EXPECT_EQ(written->exit_code, 3);
  EXPECT_EQ(written->out, std::string(300'000, '\0'));
  EXPECT_EQ(written->err, "bad\n");
}

TEST(RunToEnd, GivesVariablesAndLeavesOthersOut) {
  ::setenv("DTOOL_TEST_A", "1", 1);
  ::setenv("DTOOL_TEST_AB", "2", 1);
  const auto written = run_to_end({"sh", "-c", "echo $DTOOL_TEST_A,$DTOOL_TEST_AB,$DTOOL_TEST_C"},
                                  {"DTOOL_TEST_C=3"}, {"DTOOL_TEST_A="});
  ASSERT_TRUE(written);
  EXPECT_EQ(written->out, ",2,3\n");
}

TEST(RunToEnd, TellsThatAProgramIsNotInstalled) {
  EXPECT_FALSE(run_to_end({"no-such-program"}));
}

}  // namespace
}  // namespace dtool::ssh
