// SPDX-License-Identifier: MIT
// What a job that has just been started has in its state folder.
#include "ssh/host/start.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "ssh/host/log_times.h"
#include "ssh/host/messages/run.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

TEST(Start, TheLogOfAJobThatHasJustBegunCanBeAskedForByTime) {
  const tests::TemporaryFolder folder;
  const std::string state = folder.path() / "machine0";
  StartRequest request;
  request.run_id = "r";
  request.state_folder = state;
  request.log = folder.path() / "out" / "machine0.log";
  request.begin = {"begin() { answer started 1; }"};
  const StartReply reply = start_job(request);
  EXPECT_EQ(reply.error, "");
  EXPECT_EQ(reply.started, "1");
  EXPECT_TRUE(std::filesystem::exists(request.log));
  EXPECT_EQ(log_size_then(state, 3600), 0U);
  EXPECT_EQ(log_size_then(state, 0), 0U);
}

}  // namespace
}  // namespace dtool::host
