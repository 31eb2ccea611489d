// SPDX-License-Identifier: MIT
// The lines of several ranks in their machine's log, also where the process that puts them there is
// killed.
#include "cli/run/host/rank_logs.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/host/job.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

/// Two ranks that say what the test writes into their files.
class RankLogsTest : public testing::Test {
 protected:
  RankLogsTest() {
    std::filesystem::create_directories(state);
    std::filesystem::create_symlink(log, state / "log");
    for (int i = 0; i < 2; ++i)
      ranks.push_back(start_program({"sleep", "100"}, "", Input::nothing));
    logs.emplace(state, 0, std::vector<int>{0, 1}, 2);
    logs->start(ranks);
  }

  ~RankLogsTest() override {
    for (const pid_t each : ranks) ::kill(each, SIGKILL);
    for (const pid_t each : ranks) wait_for_child(each);
  }

  void write(std::size_t rank, const std::string& text) const { write_all(logs->file(rank), text); }

  /// Those of this test but the ranks.
  std::vector<pid_t> merging() const {
    std::vector<pid_t> found;
    for (const Process& each : read_processes()) {
      const bool is_rank = std::ranges::find(ranks, each.pid) != ranks.end();
      if (each.parent == ::getpid() && !is_rank && !each.is_dead()) found.push_back(each.pid);
    }
    return found;
  }

  void kill_merging() {
    const std::vector<pid_t> processes = merging();
    ASSERT_EQ(processes.size(), 1U);
    ::kill(processes[0], SIGKILL);
    while (!merging().empty()) host::pause(std::chrono::milliseconds(1));
    logs->keep();
  }

  bool eventually_has(const std::string& text) const {
    for (int i = 0; i < 400 && read_file(log) != text; ++i)
      host::pause(std::chrono::milliseconds(10));
    return read_file(log) == text;
  }

  /// All ranks end.
  void end() {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      ::kill(ranks[i], SIGKILL);
      logs->end(i);
    }
    logs->finish();
  }

  const tests::TemporaryFolder folder;
  const std::filesystem::path state = folder.path() / "machine0";
  const std::filesystem::path log = folder.path() / "machine0.log";
  std::vector<pid_t> ranks;
  std::optional<RankLogs> logs;
};

TEST_F(RankLogsTest, WhereTheMergingProcessWasKilledAnotherGoesOnWithoutALossOrALineTwice) {
  write(0, "one\nhalf ");
  EXPECT_TRUE(eventually_has("r0: one\n"));
  kill_merging();
  write(0, "a line\n");
  EXPECT_TRUE(eventually_has("r0: one\nr0: half a line\n"));
  kill_merging();
  write(1, "no end");
  end();
  EXPECT_EQ(read_file(log), "r0: one\nr0: half a line\nr1: no end\n");
}

TEST_F(RankLogsTest, OneThatIsKilledWhileAllHaveEndedIsReplacedToo) {
  const std::vector<pid_t> processes = merging();
  ASSERT_EQ(processes.size(), 1U);
  ::kill(processes[0], SIGSTOP);
  write(0, "last words\n");
  ::kill(processes[0], SIGKILL);
  end();
  EXPECT_EQ(read_file(log), "r0: last words\n");
}

TEST_F(RankLogsTest, WhereNobodyReplacesItTheSessionSaysWhereTheLastLinesAre) {
  tell_unmerged(state, log);
  EXPECT_FALSE(std::filesystem::exists(log) && !read_file(log)->empty()) << "it is at work";
  write(0, "last words\n");
  const std::vector<pid_t> processes = merging();
  ASSERT_EQ(processes.size(), 1U);
  ::kill(processes[0], SIGKILL);
  while (!merging().empty()) host::pause(std::chrono::milliseconds(1));
  for (int i = 0; i < 2; ++i) tell_unmerged(state, log);
  const std::string said = read_file(log).value_or("");
  const std::size_t at = said.find("the ranks' last lines may be in ");
  EXPECT_NE(at, said.npos) << said;
  EXPECT_EQ(said.find("the ranks'", at + 1), said.npos) << said;
}

TEST_F(RankLogsTest, OneThatHasPutAllThereLeavesNothingToSay) {
  write(1, "all\n");
  end();
  tell_unmerged(state, log);
  EXPECT_EQ(read_file(log), "r1: all\n");
}

TEST_F(RankLogsTest, KilledAtAnyMomentOfAFloodItLosesNothing) {
  constexpr int kLines = 60'000;
  constexpr int kKills = 40;  // fewer than keep() allows
  std::string wanted;
  for (int i = 0; i < kLines; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    write(0, line);
    wanted += "r0: " + line;
    if (i % (kLines / kKills) == 7) kill_merging();
  }
  end();
  EXPECT_TRUE(read_file(log, 8U << 20U) == wanted);
}

}  // namespace
}  // namespace dtool::host
