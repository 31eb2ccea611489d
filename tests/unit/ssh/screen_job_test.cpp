// SPDX-License-Identifier: MIT
// The scripts that start, follow and end a job can be read by bash, and their answers by dtool.
#include "ssh/screen_job.h"

#include <gtest/gtest.h>

#include "ssh/wire/run.h"
#include "tests/unit/fake_remote.h"

namespace dtool::ssh {
namespace {

using tests::answered;
using tests::failed;

const std::vector<std::string> kAwkward = {"plain", "it's", "a b", "$(id)", "\"", "-x", "a\nb",
                                           ";",     "}",    "\\",  "EOF",   "ü",  "",   "`"};

TEST(StartCommand, SendsEveryWordAsItIs) {
  for (const std::string& word : kAwkward) {
    ScreenJob job{word, word, "~/" + word, "/" + word, word, {{"file" + word, word}}};
    const auto request =
        tests::request_of<host::StartRequest>(start_command(job, OldLog::replace).input);
    EXPECT_EQ(request.run_id, word);
    EXPECT_EQ(request.session, word);
    EXPECT_EQ(request.state_folder, "~/" + word);
    EXPECT_EQ(request.log, "/" + word);
    EXPECT_TRUE(request.has_fresh_log);
    ASSERT_EQ(request.files.size(), 2U);
    EXPECT_EQ(request.files[0].name, "file" + word);
    EXPECT_EQ(request.files[0].content.text, word);
    EXPECT_EQ(request.files[1].name, "script");
    EXPECT_EQ(request.files[1].content.text, word);
  }
}

TEST(ReadStart, AJobRunsWhenItSaysSo) {
  EXPECT_FALSE(read_start(answered(host::to_frame(host::StartReply{"", "1 2 boot", ""}))));
}

TEST(ReadStart, AnErrorWins) {
  EXPECT_EQ(read_start(answered(host::to_frame(host::StartReply{"no screen", "1 2 boot", ""}))),
            "no screen");
  EXPECT_EQ(read_start(answered(host::to_frame(host::Fault{"no memory"}), 2)), "no memory");
}

TEST(ReadStart, SilenceIsNoSuccess) {
  EXPECT_TRUE(read_start(answered("")));
  EXPECT_NE(read_start(answered("", 127, "sh: not found"))->find("sh: not found"),
            std::string::npos);
}

TEST(ReadJobId, IsWhatTheSchedulerSaid) {
  EXPECT_EQ(read_job_id(answered(host::to_frame(host::StartReply{"", "job 12", "12"}))), "12");
  EXPECT_FALSE(read_job_id(answered(host::to_frame(host::StartReply{"", "1 2 boot", ""}))));
}

TEST(ReadStart, AHostThatDidNotAnswerSaysWhy) {
  EXPECT_EQ(read_start(failed(Failure::unreachable, "refused")), "refused");
}

}  // namespace
}  // namespace dtool::ssh
