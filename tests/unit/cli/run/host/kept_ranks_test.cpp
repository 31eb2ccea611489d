// SPDX-License-Identifier: MIT
// The processes that mpirun started, where one of them fails.
#include "cli/run/host/kept_ranks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/run/host/job.h"
#include "ssh/host/child.h"
#include "ssh/host/process_table.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

class KeptRanksTest : public testing::Test {
 protected:
  ~KeptRanksTest() override {
    for (const pid_t each : started_) ::kill(-each, SIGKILL);
    for (const pid_t each : started_) wait_for_child(each);
  }

  /// In a group of its own. It takes note of TERM, and goes on.
  pid_t start(const std::string& name) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      const std::string script = "trap 'echo TERM > " + name + ".heard' TERM; echo > " + name +
                                 ".ready; for _ in {1..600}; do sleep 0.05; done";
      if (::chdir(folder_.path().c_str()) == 0)
        ::execlp("bash", "bash", "-c", script.c_str(), nullptr);
      ::_exit(kCannotRun);
    }
    started_.push_back(child);
    for (int i = 0; i < 2000 && folder_.read(name + ".ready").empty(); ++i) host::pause(10ms);
    return child;
  }

  const tests::TemporaryFolder folder_;
  std::vector<pid_t> started_;
};

TEST_F(KeptRanksTest, AreEndedByTermAndThenByKillWithTheirProgramsOnceOneHasFailed) {
  const pid_t rank = start("rank");
  const pid_t program = start("program");
  folder_.write("ranks/0.0", "2 0\n");
  folder_.write("ranks/0.0.code", "7\n");
  folder_.write("ranks/0.1",
                std::to_string(rank) + " " + std::to_string(find_process(rank)->start) + "\n");
  folder_.write("ranks/0.1.program", std::to_string(program) + "\n");
  EXPECT_EQ(keep_ranks({folder_.path(), "0", "0", "2", "0"}), 7);
  EXPECT_EQ(folder_.read("first_failure"), "0\n");
  EXPECT_EQ(folder_.read("rank.heard"), "TERM\n");
  for (const pid_t each : {rank, program}) EXPECT_EQ(wait_for_child(each, 5s), kKilled);
  EXPECT_EQ(folder_.read("program.heard"), "") << "its rank passes TERM on";
  started_.clear();
}

}  // namespace
}  // namespace dtool::host
