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

/// Why the job does not run; empty: it does.
std::string fault_of(HostResult result) {
  return reply_to_start(result) ? "" : result.error;
}

TEST(ReplyToStart, TellsThatAJobRunsAndWhatTheSchedulerSaid) {
  HostResult result = answered(host::to_frame(host::StartReply{"", "job 12", "12"}));
  EXPECT_EQ(reply_to_start(result).value().job, "12");
  EXPECT_TRUE(result.ok());
}

TEST(ReplyToStart, AnErrorWins) {
  HostResult result = answered(host::to_frame(host::StartReply{"no screen", "1 2 boot", ""}));
  EXPECT_FALSE(reply_to_start(result));
  EXPECT_EQ(result.error, "no screen");
  EXPECT_EQ(result.failure, Failure::not_started);
  EXPECT_EQ(fault_of(answered(host::to_frame(host::Fault{"no memory"}), 2)), "no memory");
}

TEST(ReplyToStart, SilenceIsNoSuccess) {
  EXPECT_NE(fault_of(answered("")), "");
  EXPECT_NE(fault_of(answered("", 127, "sh: not found")).find("sh: not found"), std::string::npos);
}

TEST(ReplyToStart, AHostThatDidNotAnswerSaysWhy) {
  HostResult result = failed(Failure::unreachable, "refused");
  EXPECT_FALSE(reply_to_start(result));
  EXPECT_EQ(result.error, "refused");
  EXPECT_EQ(result.failure, Failure::unreachable);
}

}  // namespace
}  // namespace dtool::ssh
