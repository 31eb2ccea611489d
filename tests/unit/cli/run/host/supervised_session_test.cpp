// SPDX-License-Identifier: MIT
// A session that supervises, and a kill that comes between two attempts.
#include "cli/run/host/supervised_session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "cli/run/host/job.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

TEST(SupervisedSession, StartsNoAttemptWhereAKillThatHeldTheLockHasLeftItsMark) {
  const tests::TemporaryFolder folder;
  folder.write("script", "echo $1 >> attempts\nexit 1\n");
  std::optional<Descriptor> kill = lock_file(folder.path() / "lock", 0);
  ASSERT_TRUE(kill->is_open());
  const pid_t session = ::fork();
  if (session == 0) {
    kill.reset();
    ::setenv("DTOOL_RUN_ID", folder.path().c_str(), 1);
    std::filesystem::current_path(folder.path());
    ::_exit(run_supervised({0, "h", 1, 1, 60s, {}, 0, {"h"}}, "log", -1));
  }
  const auto has_begun = [&folder] {
    return folder.read("log").find("attempt 2 of 2 begins") != std::string::npos;
  };
  for (int i = 0; i < 2000 && !has_begun(); ++i) host::pause(10ms);
  EXPECT_TRUE(has_begun());
  folder.write("killed", "0\n");
  kill.reset();
  EXPECT_TRUE(wait_for_child(session, 30s));
  EXPECT_EQ(folder.read("attempts"), "0\n");
}

}  // namespace
}  // namespace dtool::host
