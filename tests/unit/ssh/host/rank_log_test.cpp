// SPDX-License-Identifier: MIT
// Marks of ranks are read as they are written; the times of a log lead to its bytes.
#include "ssh/host/rank_log.h"

#include <gtest/gtest.h>

#include <ctime>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

TEST(RankMark, IsReadAsItWasWritten) {
  for (const int rank : {0, 3, 12, 9'999'999, 99'999'999}) {
    const std::string line = rank_mark(rank) + "r5: text\n";
    const MarkedLine read = read_mark(line);
    EXPECT_EQ(read.rank, rank);
    EXPECT_EQ(read.text, "r5: text\n");
  }
}

TEST(RankMark, OtherLinesStayAsTheyAre) {
  for (const char* line : {"", "r", "r: x", "r3:x", "r-3: x", "rank 3: x", "dtool: r3: x",
                           "r999999999: x", "r99999999999999: x", " r3: x"}) {
    EXPECT_FALSE(read_mark(line).rank) << line;
    EXPECT_EQ(read_mark(line).text, line);
  }
  EXPECT_EQ(without_marks("r1: a\ndtool: b\nr2: c"), "a\ndtool: b\nc");
}

TEST(RankLog, LiesBesideTheMachinesLog) {
  const tests::TemporaryFolder folder;
  const std::string state = folder.path();
  EXPECT_EQ(rank_log(state, 0, 3), "");
  std::filesystem::create_symlink("/out/machine1.log", folder.path() / "log");
  EXPECT_EQ(rank_log(state, 0, 3), "/out/machine1.ranks/r3.log");
  EXPECT_EQ(rank_log(state, 1, 3), "/out/machine1.ranks/r3.attempt2.log");
}

TEST(RankLog, TheRanksOfALogAreNotedOnceEach) {
  const tests::TemporaryFolder folder;
  const std::string state = folder.path();
  EXPECT_TRUE(read_log_ranks(state).ranks.empty());
  for (const int rank : {4, 5, 4}) note_log_rank(state, rank, RankLines::marked);
  const LogRanks found = read_log_ranks(state);
  EXPECT_EQ(found.ranks, (std::set<int>{4, 5}));
  EXPECT_TRUE(found.are_marked);
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "log_ranks"), 18U);
}

TEST(RankLog, LiesBesideALogOfAnyName) {
  const tests::TemporaryFolder folder;
  std::filesystem::create_symlink("/out/log.txt", folder.path() / "log");
  EXPECT_EQ(rank_folder(folder.path()), "/out/log.txt.ranks");
}

TEST(RankLog, ARankIsNotedAgainWhereItsLinesAreOfAnotherKind) {
  const tests::TemporaryFolder folder;
  const std::string state = folder.path();
  for (int i = 0; i < 2; ++i) note_log_rank(state, 4, RankLines::alone);
  EXPECT_EQ(folder.read("log_ranks"), "alone 4\n");
  EXPECT_FALSE(read_log_ranks(state).are_marked);
  for (int i = 0; i < 2; ++i) note_log_rank(state, 4, RankLines::marked);
  EXPECT_EQ(folder.read("log_ranks"), "alone 4\nmarked 4\n");
  EXPECT_TRUE(read_log_ranks(state).are_marked);
  EXPECT_EQ(read_log_ranks(state).ranks, std::set<int>{4});
}

TEST(RankLog, OtherLinesThanThoseThatAreNotedAreSkipped) {
  const tests::TemporaryFolder folder;
  folder.write("log_ranks", "marked x\nother 3\nmarked 10000001\n\nalone\nalone 10000000\n");
  const LogRanks found = read_log_ranks(folder.path());
  EXPECT_EQ(found.ranks, std::set<int>{10'000'000});
  EXPECT_FALSE(found.are_marked);
}

TEST(LogTimes, LeadToTheSizeThatTheLogHad) {
  const tests::TemporaryFolder folder;
  const std::string state = folder.path();
  EXPECT_THROW(log_size_then(state, 5), std::runtime_error);
  const std::time_t now = std::time(nullptr);
  const auto line = [now](int seconds_ago, int size) {
    std::ostringstream text;
    text << std::setfill('0') << std::setw(10) << now - seconds_ago << ' ' << std::setw(19) << size;
    return text.str() + "\n";
  };
  folder.write("log_times", line(100, 10) + line(50, 20) + line(2, 30));
  EXPECT_EQ(log_size_then(state, 1000), 0U);
  EXPECT_EQ(log_size_then(state, 70), 10U);
  EXPECT_EQ(log_size_then(state, 20), 20U);
  folder.write("log", std::string(40, 'x'));
  note_log_time(state);
  note_log_time(state);
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "log_times"), 4 * 31U);
  EXPECT_EQ(log_size_then(state, 1), 30U);
  // A log that was cut short begins anew.
  folder.write("log", "short");
  note_log_time(state);
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "log_times"), 31U);
}

}  // namespace
}  // namespace dtool::host
