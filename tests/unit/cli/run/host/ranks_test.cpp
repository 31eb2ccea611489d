// SPDX-License-Identifier: MIT
// The processes of one machine, where one of them fails.
#include "cli/run/host/ranks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "cli/run/host/job.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

TEST(Ranks, AreEndedByTermAndThenByKillOnceOneHasFailed) {
  const tests::TemporaryFolder folder;
  const auto state = folder.path() / "machine0";
  folder.write("machine0.log", "");
  folder.write("machine0/program",
               "cd \"$1\"\n"
               "if [ \"$RANK\" = 0 ]; then until [ -e ready ]; do sleep 0.05; done; exit 7; fi\n"
               "trap 'echo TERM > heard' TERM\n"
               "echo $$ > ready\n"
               "for _ in {1..600}; do sleep 0.05; done\n"
               "echo > outlived\n");
  std::filesystem::create_symlink(folder.path() / "machine0.log", state / "log");
  const pid_t ranks = ::fork();
  if (ranks == 0) {
    ::_exit(run_ranks(
        {state, "0", "0", "0", "2", "env", "no", "bash", state / "program", folder.path()}));
  }
  EXPECT_EQ(wait_for_child(ranks, 20s), 7);
  EXPECT_EQ(folder.read("machine0/first_failure"), "0\n");
  EXPECT_EQ(folder.read("heard"), "TERM\n");
  ASSERT_NE(folder.read("ready"), "");
  EXPECT_EQ(::kill(std::stoi(folder.read("ready")), 0), -1) << "it goes on";
}

}  // namespace
}  // namespace dtool::host
