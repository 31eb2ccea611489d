// SPDX-License-Identifier: MIT
// What CLI11 complains of is told in dtool's words, however long the value is and whatever it
// holds.
#include "cli/command_line.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "cli/flag_values.h"

namespace dtool::cli {
namespace {

/// What is said of `flag` with that value; its hint left out.
std::string said_of(const std::string& flag, const std::string& value) {
  CLI::App app("", "dtool");
  Options command(app);
  int machine = 0;
  double grace = 0;
  std::string color;
  command.add_whole_number("--machine", machine, "");
  command.add_option("--grace", grace, "").check(must_be_from(0, 3600));
  command.add_option("--color", color, "").one_of({"auto", "always"});
  try {
    app.parse(std::vector<std::string>{value, flag});  // the last word first
  } catch (const CLI::ParseError& error) {
    const std::string text = explain(app, error, {}).what();
    return text.substr(0, text.find("\nhint: "));
  }
  return "";
}

TEST(CommandLine, AValueThatCannotBeIsNamedWithWhatCouldBe) {
  EXPECT_EQ(said_of("--machine", "x"), "--machine: 'x' is not a whole number from 0 to 2147483647");
  EXPECT_EQ(said_of("--grace", "-1"), "--grace: '-1' is not a number from 0 to 3600");
  EXPECT_EQ(said_of("--color", "blue"), "--color: 'blue' is not one of auto, always");
}

TEST(CommandLine, AValueMayBeLong) {
  const std::string many(200'000, 'x');
  EXPECT_EQ(said_of("--machine", many),
            "--machine: '" + many + "' is not a whole number from 0 to 2147483647");
  EXPECT_EQ(said_of("--color", many), "--color: '" + many + "' is not one of auto, always");
}

TEST(CommandLine, AValueMayHoldTheWordsOfAComplaint) {
  for (const std::string value : {"Value 1 not in range a to b", "Value  not in range ",
                                  "a not in {b}", ": Value x", " = "}) {
    EXPECT_EQ(said_of("--color", value), "--color: '" + value + "' is not one of auto, always");
    EXPECT_EQ(said_of("--machine", value),
              "--machine: '" + value + "' is not a whole number from 0 to 2147483647");
  }
}

}  // namespace
}  // namespace dtool::cli
