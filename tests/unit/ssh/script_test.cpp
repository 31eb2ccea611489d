// SPDX-License-Identifier: MIT
// Scripts travel on standard input, and their answers come back through whatever else is printed.
#include "ssh/script.h"

#include <gtest/gtest.h>

#include "tests/unit/syntax.h"

namespace dtool::ssh {
namespace {

TEST(BehindMark, IsWhatFollowsTheFirstLineThatEndsWithIt) {
  EXPECT_EQ(behind_mark("Welcome to gpu01!\nmark not here\nmark\none\nmark\ntwo", "mark"),
            "one\nmark\ntwo");
  EXPECT_EQ(behind_mark("mark", "mark"), "");
  EXPECT_EQ(behind_mark("marks\n", "mark"), std::nullopt);
  EXPECT_EQ(behind_mark("", "mark"), std::nullopt);
}

TEST(BehindMark, StandsBehindAPromptWithoutItsLineEndAndLineEndsOfEitherKind) {
  EXPECT_EQ(behind_mark("(base) $ mark\r\nend\r\n", "mark"), "end\r\n");
  EXPECT_EQ(behind_mark("\x1b]0;title\amark\nend", "mark"), "end");
}

TEST(FindAnswer, IsTheFirstOfItsName) {
  const Answers answers = {{"a", "1"}, {"a", "2"}};
  EXPECT_EQ(find_answer(answers, "a"), "1");
  EXPECT_EQ(find_answer(answers, "b"), std::nullopt);
}

/// What bash(text) prints, run by `shell` as a login shell would.
std::string run_in(const std::string& shell, const std::string& text) {
  const Command command = bash(text);
  const tests::TemporaryFolder folder;
  const std::string input = folder.write("input", command.input).string();
  const std::string line = folder.write("line", command.line).string();
  return tests::output_of(shell + " -c \"$(cat " + line + ")\" < " + input);
}

TEST(Bash, RunsTheTextWhateverItHolds) {
  EXPECT_EQ(run_in("sh", "echo \"it's\" '$x' `echo y`\nfalse\n"), "it's $x y\nexit code 1\n");
  EXPECT_EQ(run_in("bash", "echo $BASH_VERSINFO | grep -c .\nexit 7"), "1\nexit code 7\n");
}

TEST(Bash, RunsTheTextInAnyLocale) {
  const std::string text =
      "f='häuser € 家'; printf '%s\\n' \"$f\"\n" + std::string(20000, '#') + "\n";
  for (const char* locale : {"C", "C.UTF-8", "xx_XX.UTF-8"})
    EXPECT_NE(run_in(std::string("env LC_ALL=") + locale + " sh", text).find("häuser € 家\n"),
              std::string::npos)
        << locale;
}

TEST(Bash, RunsNothingOfATextThatDidNotArriveWhole) {
  const Command command = bash("echo begun\necho over");
  const tests::TemporaryFolder folder;
  for (const std::size_t size : {std::size_t(0), std::size_t(11), command.input.size() - 1}) {
    const std::string input = folder.write("input", command.input.substr(0, size)).string();
    const std::string line = folder.write("line", command.line).string();
    EXPECT_EQ(tests::output_of("sh -c \"$(cat " + line + ")\" < " + input), "exit code 1\n")
        << size;
  }
}

TEST(Bash, LeavesNothingToReadOnStandardInput) {
  EXPECT_EQ(run_in("sh", "read -r line || echo nothing\necho \"$line\"\n"), "nothing\n\n");
}

}  // namespace
}  // namespace dtool::ssh
