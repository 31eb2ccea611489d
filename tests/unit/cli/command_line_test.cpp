// What CLI11 complains of is told in dtool's words, however long the value is and whatever it
// holds.
#include "cli/command_line.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

namespace dtool::cli {
namespace {

/// What is said of `flag` with that value; its hint left out.
std::string said_of(const std::string& flag, const std::string& value) {
  CLI::App app("", "dtool");
  int machine = 0;
  double grace = 0;
  std::string color;
  app.add_option("--machine", machine);
  app.add_option("--grace", grace)->check(CLI::Range(0.0, 3600.0));
  app.add_option("--color", color)->check(CLI::IsMember({"auto", "always"}));
  try {
    app.parse(std::vector<std::string>{value, flag});  // the last word first
  } catch (const CLI::ParseError& error) {
    const std::string text = explain(app, error, {}).what();
    return text.substr(0, text.find("\nhint: "));
  }
  return "";
}

TEST(CommandLine, AValueThatCannotBeIsNamedWithWhatCouldBe) {
  EXPECT_EQ(said_of("--machine", "x"), "--machine: 'x' is no whole number, or too large a one");
  EXPECT_EQ(said_of("--grace", "-1"), "--grace: '-1' is not a number from 0 to 3600");
  EXPECT_EQ(said_of("--color", "blue"), "--color: 'blue' is none of auto, always");
}

TEST(CommandLine, AValueMayBeLong) {
  const std::string many(200'000, 'x');
  EXPECT_EQ(said_of("--machine", many),
            "--machine: '" + many + "' is no whole number, or too large a one");
  EXPECT_EQ(said_of("--color", many), "--color: '" + many + "' is none of auto, always");
}

TEST(CommandLine, AValueMayHoldTheWordsOfAComplaint) {
  for (const std::string value : {"Value 1 not in range a to b", "Value  not in range ",
                                  "a not in {b}", ": Value x", " = "}) {
    EXPECT_EQ(said_of("--color", value), "--color: '" + value + "' is none of auto, always");
    EXPECT_EQ(said_of("--machine", value),
              "--machine: '" + value + "' is no whole number, or too large a one");
  }
}

}  // namespace
}  // namespace dtool::cli
