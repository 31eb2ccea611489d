// SPDX-License-Identifier: MIT
// A log that is followed goes on over a lost connection, and not for ever.
#include "cli/logs/follow.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "cli/console.h"
#include "killfiles/killfile.h"
#include "ssh/wire/run.h"
#include "tests/unit/fake_remote.h"

namespace dtool::cli {
namespace {

using std::chrono::milliseconds;

const ssh::HostResult kLost = tests::failed(ssh::Failure::connection_lost, "the connection ended");

/// The log of one machine.
struct FollowedLog : testing::Test {
  void SetUp() override {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    run.run_id = "demo";
    run.machines.resize(1);
    logs.emplace(console, run, Fold::no, LogSelection{});
  }
  void TearDown() override { shown(); }

  void comes(const std::string& frame) { logs->on_output(0, ssh::Stream::out, frame); }
  void begins(std::uint64_t offset = 0) { comes(host::to_frame(host::LogBegin{offset, false})); }
  /// What is asked of the machine after the one call ended so; nothing: no more.
  std::optional<host::LogRequest> next(const ssh::HostResult& result) {
    const auto task = logs->next_task(0, result);
    if (!task) return std::nullopt;
    pauses.push_back(std::chrono::duration_cast<milliseconds>(task->pause).count());
    return tests::request_of<host::LogRequest>(
        std::get<ssh::Command>(task->task.value().step).input);
  }
  /// Standard error so far, once.
  std::string shown() {
    if (is_shown) return "";
    is_shown = true;
    testing::internal::GetCapturedStdout();
    return testing::internal::GetCapturedStderr();
  }

  killfiles::Killfile run;
  Console console;
  std::optional<FollowedLogs> logs;
  std::vector<long> pauses;  ///< milliseconds
  bool is_shown = false;
};

TEST_F(FollowedLog, IsAskedForAgainTwelveTimesInAMinuteAndAHalf) {
  begins();
  while (next(kLost)) ASSERT_LE(pauses.size(), 12U);
  EXPECT_EQ(pauses, (std::vector<long>{500, 1000, 2000, 4000, 8000, 10000, 10000, 10000, 10000,
                                       10000, 10000, 10000}));
  EXPECT_EQ(shown(),
            "machine0: the connection ended; trying again (Ctrl-C ends this, not the run)\n");
}

TEST_F(FollowedLog, GoesOnBehindItsLastByteAndCountsAnew) {
  begins(100);
  comes(host::to_frame(host::LogBytes{"one\n"}));
  for (int i = 0; i < 3; ++i) {
    const auto again = next(tests::failed(ssh::Failure::unreachable, "no route to host"));
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->is_followed);
    EXPECT_EQ(again->offset, 104U);
    EXPECT_EQ(again->before.text, "one\n");
    EXPECT_FALSE(again->lines);
    EXPECT_FALSE(again->since_s);
  }
  begins(104);
  EXPECT_TRUE(next(kLost));
  EXPECT_EQ(pauses, (std::vector<long>{500, 1000, 2000, 500}));
  EXPECT_NE(shown().find("machine0: connected again\n"), std::string::npos);
}

TEST_F(FollowedLog, IsAskedForOnceMoreIfTheRunHasFailed) {
  begins();
  comes(host::to_frame(host::LogBytes{"dtool: the run failed: rank 3 ended\n"}));
  EXPECT_TRUE(next(kLost));
  EXPECT_FALSE(next(kLost));
}

TEST_F(FollowedLog, ThatNeverBeganIsNotAskedForAgain) {
  EXPECT_FALSE(next(kLost));
}

TEST_F(FollowedLog, IsAskedForAgainAfterWhatMayPassAndNoOtherFailure) {
  begins();
  EXPECT_TRUE(next(tests::failed(ssh::Failure::connect_timed_out, "")));
  for (const ssh::Failure other : {ssh::Failure::not_authenticated, ssh::Failure::host_key_changed,
                                   ssh::Failure::timed_out, ssh::Failure::not_started})
    EXPECT_FALSE(next(tests::failed(other, "")));
}

TEST_F(FollowedLog, IsAskedForAgainIfTheHostsProcessDiedInTheMiddle) {
  begins();
  EXPECT_TRUE(next(tests::answered("", 137)));
  EXPECT_FALSE(next(tests::answered("", 0)));
  comes(host::to_frame(host::LogEnd{"exited", 1}));
  EXPECT_FALSE(next(tests::answered("", 137)));
  EXPECT_NE(shown().find("machine0: the answer ended early; trying again"), std::string::npos);
}

TEST_F(FollowedLog, IsLeftAloneAfterCtrlC) {
  begins();
  logs->on_interrupt({0});
  EXPECT_FALSE(next(kLost));
  EXPECT_EQ(shown(), "interrupted: the run goes on by itself\n");
}

TEST(FollowLastLines, GoOnOverALostConnection) {
  const std::string first =
      host::to_frame(host::LogBegin{0, false}) + host::to_frame(host::LogBytes{"one\ntwo"});
  const std::string rest = host::to_frame(host::LogBegin{7, false}) +
                           host::to_frame(host::LogBytes{" more\n"}) +
                           host::to_frame(host::LogEnd{"exited", 3});
  tests::FakeRemote remote("h1,h2");
  ssh::HostResult lost = kLost;
  lost.out = first;
  remote.answers_to[0] = {{1, lost}};
  remote.answers_to[1] = {{1, tests::answered(rest, 3)}};
  killfiles::Killfile jobs;
  jobs.machines.resize(2);
  Console console;
  testing::internal::CaptureStderr();
  const auto results = follow_last_lines(console, remote, jobs, {1});
  testing::internal::GetCapturedStderr();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].error, "exit code 3; its last lines:\n      one\n      two more");
}

}  // namespace
}  // namespace dtool::cli
