// SPDX-License-Identifier: MIT
#include "cli/ready/tree_push.h"

#include <gtest/gtest.h>

namespace dtool::cli {
namespace {

using std::chrono::seconds;

TEST(SendingProgress, HowMuchThereIsToBeIsToldOnceItIsKnownOfEveryHost) {
  const SendingProgress::Clock::time_point now;
  SendingProgress progress("sending the code", 3);
  EXPECT_EQ(progress.line(now), "sending the code: 0 of 3 hosts, 0.0 MB");
  progress.sent(0, {1'000'000, 4'000'000}, now);
  progress.sent(1, {500'000}, now);
  EXPECT_EQ(progress.line(now), "sending the code: 0 of 3 hosts, 1.5 MB");
  progress.done(2);  // it had all of it
  EXPECT_EQ(progress.line(now), "sending the code: 1 of 3 hosts, 1.5 MB");
  progress.sent(1, {2'000'000, 4'000'000}, now);
  EXPECT_EQ(progress.line(now), "sending the code: 1 of 3 hosts, 3.0 of 8.0 MB (37 %)");
}

TEST(SendingProgress, AfterASecondItsSpeedIsTold) {
  const SendingProgress::Clock::time_point begin;
  SendingProgress progress("sending the code", 1);
  progress.sent(0, {0, 6'000'000}, begin);
  progress.sent(0, {3'000'000, 6'000'000}, begin + seconds(2));
  EXPECT_EQ(progress.line(begin + seconds(2)),
            "sending the code: 0 of 1 hosts, 3.0 of 6.0 MB (50 %), 1.5 MB/s, 2s left");
}

TEST(SendingProgress, ReceivingIsCalledSo) {
  EXPECT_EQ(SendingProgress("receiving the files", 2).line({}),
            "receiving the files: 0 of 2 hosts, 0.0 MB");
}

TEST(SendingProgress, AHostThatFailedHoldsBackNoTotal) {
  const SendingProgress::Clock::time_point now;
  SendingProgress progress("sending the code", 2);
  progress.sent(0, {1'000'000, 4'000'000}, now);
  progress.sent(1, {1'000'000}, now);
  progress.done(1);
  EXPECT_EQ(progress.line(now), "sending the code: 1 of 2 hosts, 2.0 of 5.0 MB (40 %)");
}

}  // namespace
}  // namespace dtool::cli
