// Scripts travel on standard input, and their answers come back through whatever else is printed.
#include "ssh/script.h"

#include <gtest/gtest.h>

#include "tests/unit/syntax.h"

namespace dtool::ssh {
namespace {

TEST(ReadAnswers, KeepsNamesValuesAndRepetitions) {
  EXPECT_EQ(read_answers("dtool-answer a=1\ndtool-answer b=x = y\ndtool-answer a=\n"),
            (Answers{{"a", "1"}, {"a", ""}, {"b", "x = y"}}));
}

TEST(ReadAnswers, LeavesOutTheLinesOfOthers) {
  EXPECT_EQ(read_answers("Welcome to gpu01!\na=1\n\n dtool-answers c=2\ndtool-answer d=4\n= \n"),
            (Answers{{"d", "4"}}));
}

TEST(ReadAnswers, SeesAnAnswerBehindAPromptWithoutItsLineEnd) {
  EXPECT_EQ(read_answers("(base) $ dtool-answer a=1\n\x1b]0;title\adtool-answer b=2\n"),
            (Answers{{"a", "1"}, {"b", "2"}}));
}

TEST(ReadAnswers, TakesLineEndsOfEitherKind) {
  EXPECT_EQ(read_answers("hello\r\ndtool-answer a=1\r\ndtool-answer b=\r\n"),
            (Answers{{"a", "1"}, {"b", ""}}));
}

TEST(ReadAnswers, ReadsALastLineWithoutItsEnd) {
  EXPECT_EQ(read_answers("dtool-answer a=1"), (Answers{{"a", "1"}}));
}

TEST(ReadAnswers, WithoutAnEqualsSignIsNone) {
  EXPECT_EQ(read_answers("dtool-answer a\ndtool-answer \ndtool-answer"), Answers{});
  EXPECT_EQ(read_answers(""), Answers{});
}

TEST(ReadAnswers, BytesOfAnyKindPass) {
  const std::string binary("\0\xff\xfe", 3);
  EXPECT_EQ(read_answers(binary + "\n" + binary + "dtool-answer a=" + binary + "\n"),
            (Answers{{"a", binary}}));
}

TEST(FindAnswer, IsTheFirstOfItsName) {
  const Answers answers = read_answers("dtool-answer a=1\ndtool-answer a=2\n");
  EXPECT_EQ(find_answer(answers, "a"), "1");
  EXPECT_EQ(find_answer(answers, "b"), std::nullopt);
}

TEST(EveryAnswer, KeepsTheOrder) {
  const Answers answers = read_answers("dtool-answer a=2\ndtool-answer b=3\ndtool-answer a=1\n");
  EXPECT_EQ(every_answer(answers, "a"), (std::vector<std::string>{"2", "1"}));
  EXPECT_TRUE(every_answer(answers, "c").empty());
}

TEST(FindNumber, IsTheFirstOfItsNameOrNothing) {
  const Answers answers = read_answers("dtool-answer a=x\ndtool-answer a=1\ndtool-answer b=-7\n");
  EXPECT_EQ(find_number<int>(answers, "a"), std::nullopt);
  EXPECT_EQ(find_number<int>(answers, "b"), -7);
  EXPECT_EQ(find_number<int>(answers, "c"), std::nullopt);
}

TEST(AnswerFunction, IsReadBack) {
  const std::string said =
      tests::run_bash(std::string(answer_function()) +
                      "answer a 'x y'\nanswer b $'two\\nlines'\nanswer c '%s\\n'\nanswer d ''\n");
  EXPECT_EQ(read_answers(said),
            (Answers{{"a", "x y"}, {"b", "two lines"}, {"c", "%s\\n"}, {"d", ""}}));
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
