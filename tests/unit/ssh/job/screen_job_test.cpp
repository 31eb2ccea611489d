// The scripts that start, follow and end a job can be read by bash, and their answers by dtool.
#include "ssh/job/screen_job.h"

#include <gtest/gtest.h>

#include "tests/unit/fake_remote.h"
#include "tests/unit/syntax.h"

namespace dtool::ssh {
namespace {

using tests::answered;
using tests::failed;
using tests::syntax_fault;

const std::vector<std::string> kAwkward = {"plain", "it's", "a b", "$(id)", "\"", "-x", "a\nb",
                                           ";",     "}",    "\\",  "EOF",   "ü",  "",   "`"};

TEST(StartCommand, IsReadByBashWhateverItIsGiven) {
  for (const std::string& word : kAwkward) {
    ScreenJob job{word, word, "~/" + word, "/" + word, word, {{"file" + word, word}}};
    EXPECT_EQ(syntax_fault(start_command(job, OldLog::append).input), "") << word;
    EXPECT_EQ(syntax_fault(start_command(job, OldLog::replace).input), "") << word;
  }
}

TEST(StartCommand, IsRefusedOnAnotherHostThanTheOneThatWasLookedAt) {
  ScreenJob job{"x_1", "s", "/nowhere/x_1/machine0", "/nowhere/log", "true"};
  job.host = "- elsewhere 5f0c91aa-1111-4222-8333-444455556666 1";
  const std::string said = tests::run_bash(start_command(job, OldLog::append).input);
  EXPECT_NE(said.find("error=another host answers now than the one that was looked at: "),
            std::string::npos)
      << said;
  EXPECT_NE(said.find(", not " + job.host), std::string::npos) << said;
  job.host = "";
  EXPECT_EQ(tests::run_bash(start_command(job, OldLog::append).input).find("another host"),
            std::string::npos);
}

TEST(FollowCommand, IsReadByBashWhateverItIsGiven) {
  for (const std::string& word : kAwkward) {
    EXPECT_EQ(syntax_fault(follow_command("~/" + word, 1'000'000).input), "") << word;
  }
}

TEST(ReadStart, AJobRunsWhenItSaysSo) {
  EXPECT_EQ(read_start(answered("noise\ndtool-answer started=12 34 boot\n")), std::nullopt);
}

TEST(ReadStart, AnErrorWins) {
  EXPECT_EQ(read_start(answered("dtool-answer error=no room\ndtool-answer started=1\n", 1)),
            "no room");
}

TEST(ReadStart, SilenceIsNoSuccess) {
  EXPECT_EQ(read_start(answered("", 0, "odd")), "the start script ended with exit code 0: odd");
  EXPECT_EQ(read_start(answered("started=1\n", 3)), "the start script ended with exit code 3: ");
  EXPECT_EQ(read_start(answered("", 127)), "bash is not installed");
}

TEST(ReadStart, AHostThatDidNotAnswerSaysWhy) {
  EXPECT_EQ(read_start(failed(Failure::unreachable, "refused")), "refused");
}

}  // namespace
}  // namespace dtool::ssh
