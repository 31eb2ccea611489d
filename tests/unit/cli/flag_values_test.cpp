// SPDX-License-Identifier: MIT
// Whole numbers on the command line are decimal, whatever zeros stand before them.
#include "cli/options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace dtool::cli {
namespace {

TEST(FlagValues, AFlagOfAWholeNumberReadsDecimalAndIsCheckedAsSuch) {
  CLI::App app;
  Options command(app);
  std::optional<std::uint64_t> seed;
  std::optional<int> restarts;
  std::vector<int> machines;
  command.add_whole_number("--seed", seed, "", {0, std::numeric_limits<std::uint64_t>::max()});
  command.add_whole_number("--restarts", restarts, "", {0, 1000});
  command.add_whole_number("--machine", machines, "").take_all();
  app.parse("--seed 010 --restarts 0999 --machine 08 --machine 011");
  EXPECT_EQ(seed, 10U);
  EXPECT_EQ(restarts, 999);
  EXPECT_EQ(machines, (std::vector<int>{8, 11}));
}

TEST(FlagValues, AWholeNumberIsOneOfTheFlagsOwn) {
  std::optional<std::uint64_t> seed;
  int machine = 0;
  CLI::App app;
  Options command(app);
  command.add_whole_number("--seed", seed, "", {0, std::numeric_limits<std::uint64_t>::max()});
  command.add_whole_number("--machine", machine, "");
  app.parse("--seed 18446744073709551615 --machine 000");
  EXPECT_EQ(seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(machine, 0);
  for (const std::string wrong : {"-1", "1.5", "0x10", "01a", "18446744073709551616"})
    EXPECT_THROW(app.parse("--seed " + wrong), CLI::ValidationError) << wrong;
  EXPECT_THROW(app.parse("--machine 2147483648"), CLI::ValidationError);
}

TEST(FlagValues, ARangeHasBothItsEnds) {
  double grace = 0;
  CLI::App app;
  Options command(app);
  command.add_option("--grace", grace, "").check(must_be_from(0.5, 3600));
  for (const std::string right : {"0.5", "3600", "1e3"})
    EXPECT_NO_THROW(app.parse("--grace " + right));
  for (const std::string wrong : {"0.4", "3601", "nan", "x", "1 2"})
    EXPECT_THROW(app.parse("--grace '" + wrong + "'"), CLI::ValidationError) << wrong;
}

}  // namespace
}  // namespace dtool::cli
