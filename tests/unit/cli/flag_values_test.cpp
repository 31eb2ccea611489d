// Whole numbers on the command line are decimal, whatever zeros stand before them.
#include "cli/flag_values.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace dtool::cli {
namespace {

TEST(FlagValues, ZerosBeforeANumberDoNotMakeItOctal) {
  EXPECT_EQ(in_decimal("010"), "10");
  EXPECT_EQ(in_decimal("08"), "8");
  EXPECT_EQ(in_decimal("000"), "0");
  EXPECT_EQ(in_decimal("0"), "0");
  for (const std::string other : {"", "-010", "0x10", "01a", " 01"})
    EXPECT_EQ(in_decimal(other), other);
}

TEST(FlagValues, AFlagOfAWholeNumberReadsDecimalAndIsCheckedAsSuch) {
  CLI::App app;
  std::optional<std::uint64_t> seed;
  std::optional<int> restarts;
  std::vector<int> machines;
  add_whole_number(app, "--seed", seed, "")->check(must_be_seed);
  add_whole_number(app, "--restarts", restarts, "")->check(CLI::Range(0, 1000));
  add_whole_number(app, "--machine", machines, "")->expected(1)->take_all();
  app.parse("--seed 010 --restarts 0999 --machine 08 --machine 011");
  EXPECT_EQ(seed, 10U);
  EXPECT_EQ(restarts, 999);
  EXPECT_EQ(machines, (std::vector<int>{8, 11}));
}

TEST(FlagValues, ASeedIsAnyWholeNumberOf64Bits) {
  EXPECT_EQ(must_be_seed(std::to_string(std::numeric_limits<std::uint64_t>::max())), "");
  for (const std::string wrong : {"", "-1", "1.5", "0x10", "18446744073709551616"})
    EXPECT_NE(must_be_seed(wrong), "") << wrong;
}

}  // namespace
}  // namespace dtool::cli
