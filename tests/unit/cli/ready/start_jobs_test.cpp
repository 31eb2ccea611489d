// SPDX-License-Identifier: MIT
// The reason why a job did not start is told with its host.
#include "cli/ready/start_jobs.h"

#include <gtest/gtest.h>

#include "cli/console.h"
#include "ssh/wire/run.h"
#include "tests/unit/fake_remote.h"

namespace dtool::cli {
namespace {

TEST(StartJobs, TellsWhyAJobDidNotStart) {
  tests::FakeRemote remote("h[1-4]");
  remote.answers[0] = tests::answered(host::to_frame(host::StartReply{"", "1 2 boot", ""}));
  remote.answers[1] =
      tests::answered(host::to_frame(host::StartReply{"screen is not installed", "", ""}));
  remote.answers[3] = tests::answered("", 127, "sh: not found");
  const std::vector<HostJob> jobs = {{0, {}}, {1, {}}, {3, {}}};
  Console console;
  const auto results = start_jobs(console, remote, jobs, ssh::OldLog::append);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0].ok());
  EXPECT_EQ(results[1].error, "screen is not installed");
  EXPECT_EQ(results[1].failure, ssh::Failure::not_started);
  EXPECT_NE(results[2].error.find("sh: not found"), std::string::npos);
  EXPECT_EQ(results[2].host.name, "h4");
}

}  // namespace
}  // namespace dtool::cli
