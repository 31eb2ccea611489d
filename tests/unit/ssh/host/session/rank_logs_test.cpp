// SPDX-License-Identifier: MIT
// The lines of several ranks in their machine's log, also where the process that puts them there is
// killed.
#include "ssh/host/session/rank_logs.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"
#include "ssh/host/session/job.h"
#include "tests/unit/few_descriptors.h"
#include "tests/unit/refused_calls.h"
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
    logs.reset();  // whose process ends with it
    for (const pid_t each : merging()) wait_for_child(each, std::chrono::seconds(10));
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

TEST_F(RankLogsTest, ItsProcessStaysForTheLastWordsOfARunThatIsEnded) {
  const std::vector<pid_t> processes = merging();
  ASSERT_EQ(processes.size(), 1U);
  write(0, "first\n");
  EXPECT_TRUE(eventually_has("r0: first\n"));
  for (const int each : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    ::kill(processes[0], each);
  write(0, "last words\n");
  EXPECT_TRUE(eventually_has("r0: first\nr0: last words\n"));
  EXPECT_EQ(merging(), processes);
  EXPECT_EQ(::getsid(processes[0]), processes[0]) << "mpirun ends its own session's groups";
  end();
  EXPECT_EQ(merging(), std::vector<pid_t>{});
}

TEST_F(RankLogsTest, ALineWithoutAnEndIsCompleteOnceItsRankHasEnded) {
  write(1, "no end");
  logs->end(1);
  EXPECT_TRUE(eventually_has("r1: no end\n")) << "the other one goes on";
}

TEST_F(RankLogsTest, WhereItsProcessIsReplacedTheNewOneKnowsWhichRanksHaveEnded) {
  const std::vector<pid_t> processes = merging();
  ASSERT_EQ(processes.size(), 1U);
  ::kill(processes[0], SIGSTOP);
  write(1, "no end");
  logs->end(1);
  kill_merging();
  EXPECT_TRUE(eventually_has("r1: no end\n"));
}

TEST_F(RankLogsTest, ItsProcessHoldsOneEndOfTheChannelAlone) {
  const auto count_sockets = [](pid_t process) {
    const auto is_socket = [](const std::filesystem::directory_entry& each) {
      std::error_code gone;
      return std::filesystem::read_symlink(each.path(), gone).string().starts_with("socket:");
    };
    const std::string files = "/proc/" + std::to_string(process) + "/fd";
    return std::count_if(std::filesystem::directory_iterator(files), {}, is_socket);
  };
  write(0, "first\n");
  EXPECT_TRUE(eventually_has("r0: first\n"));
  const std::vector<pid_t> processes = merging();
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_EQ(count_sockets(processes[0]), count_sockets(::getpid()));
}

TEST_F(RankLogsTest, SettledAllIsThereEachTime) {
  std::string wanted;
  for (int i = 0; i < 3; ++i) {
    const std::string line(100'000, static_cast<char>('a' + i));
    for (int j = 0; j < 20; ++j) {
      write(0, line + "\n");
      wanted += "r0: " + line + "\n";
    }
    logs->settle();
    EXPECT_TRUE(read_file(log, 8U << 20U) == wanted) << i;
  }
}

TEST_F(RankLogsTest, FilesAreMadeForWhoMayReadTheRuns) {
  write(0, "one\n");
  EXPECT_TRUE(eventually_has("r0: one\n"));
  const mode_t mask = ::umask(0);
  ::umask(mask);
  for (const std::string& each : {logs->path(0), log.string()}) {
    struct stat found {};
    ASSERT_EQ(::stat(each.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0666U & ~mask) << each;
  }
}

TEST_F(RankLogsTest, WhatWasInAFileBeforeIsNotPutThereAgain) {
  append_to(rank_log(state, 1, 5), "of before\n");
  RankLogs other(state, 1, {5}, 2);
  ASSERT_TRUE(other.are_open());
  other.start({ranks[0]});
  write_all(other.file(0), "new\n");
  EXPECT_TRUE(eventually_has("r5: new\n"));
  other.end(0);
  other.finish();
  const LogRanks noted = read_log_ranks(state);
  EXPECT_TRUE(noted.are_marked);
  EXPECT_EQ(noted.ranks, (std::set<int>{0, 1, 5}));
}

TEST_F(RankLogsTest, OneThatIsKilledAHundredTimesIsNotReplacedAnyMore) {
  constexpr const char* kLack = " alone: no process can put them here";
  const auto says_so = [this] {
    return read_file(log).value_or("").find(kLack) != std::string::npos;
  };
  for (int i = 0; i < 99; ++i) kill_merging();
  EXPECT_FALSE(says_so());
  EXPECT_EQ(merging().size(), 1U);
  kill_merging();
  EXPECT_TRUE(says_so());
  EXPECT_EQ(merging().size(), 0U);
}

TEST_F(RankLogsTest, WithoutDescriptorsForItsChannelTheLogSaysWhereTheLinesAre) {
  RankLogs other(state, 1, {5}, 2);
  ASSERT_TRUE(other.are_open());
  {
    const tests::FewDescriptors three(3);  // the rank's file, the log, and half a pair
    other.start({ranks[0]});
  }
  EXPECT_EQ(merging().size(), 1U) << "of the test's own ranks";
  EXPECT_EQ(read_file(log), "dtool: the ranks' lines are in " + rank_folder(state) +
                                " alone: no process can put them here: Too many open files\n");
}

TEST_F(RankLogsTest, WithoutAProcessForThemTheLogSaysWhereTheLinesAre) {
  EXPECT_EXIT(
      {
        RankLogs other(state, 1, {5}, 2);
        tests::refuse_processes(EAGAIN);
        other.start({ranks[0]});
        other.keep();
        other.finish();
        ::_exit(0);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EQ(read_file(log), "dtool: the ranks' lines are in " + rank_folder(state) +
                                " alone: no process can put them here: Resource temporarily "
                                "unavailable\n");
}

/// Where ranks have no files of their own.
class OneRank : public testing::Test {
 protected:
  static long count_children() {
    return std::ranges::count(read_processes(), ::getpid(), &Process::parent);
  }

  /// That the ranks write into the log themselves.
  void expect_alone(int attempt, const std::vector<int>& numbers, int processes) {
    const long before = count_children();
    RankLogs logs(state, attempt, numbers, processes);
    EXPECT_FALSE(logs.are_open());
    logs.start({::getpid()});
    EXPECT_EQ(count_children(), before);
    logs.keep();
    logs.end(0);
    logs.settle();
    logs.finish();
    EXPECT_FALSE(read_log_ranks(state).are_marked);
    EXPECT_EQ(read_log_ranks(state).ranks, (std::set<int>{numbers.begin(), numbers.end()}));
  }

  const tests::TemporaryFolder folder;
  const std::filesystem::path state = folder.path() / "machine0";
};

TEST_F(OneRank, AloneOnItsMachineWritesIntoTheLog) {
  folder.write("machine0.log", "");
  std::filesystem::create_directories(state);
  std::filesystem::create_symlink(folder.path() / "machine0.log", state / "log");
  expect_alone(0, {3}, 1);
  EXPECT_FALSE(std::filesystem::exists(rank_folder(state)));
}

TEST_F(OneRank, WhoseFileCannotBeMadeWritesIntoTheLog) {
  folder.write("machine0.log", "");
  std::filesystem::create_directories(state);
  std::filesystem::create_symlink(folder.path() / "machine0.log", state / "log");
  std::filesystem::create_directories(rank_log(state, 0, 3));
  expect_alone(0, {3, 4}, 2);
}

TEST_F(OneRank, WithoutALogOfItsMachineHasNoFile) {
  std::filesystem::create_directories(state);
  expect_alone(0, {3}, 2);
}

TEST_F(RankLogsTest, AreLetGoInAChildThatHasNoUseForThem) {
  logs->let_go();
  EXPECT_FALSE(logs->are_open());
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
