// SPDX-License-Identifier: MIT
// A process that a launcher starts: the numbers that it is told.
#include "cli/run/host/rank.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/run/host/job.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using Counts = std::vector<int>;

TEST(SlurmText, TasksOfEachNodeAreReadAsSlurmWritesThem) {
  EXPECT_EQ(parse_tasks_per_node("2(x3)"), (Counts{2, 2, 2}));
  EXPECT_EQ(parse_tasks_per_node("4,1(x2),3"), (Counts{4, 1, 1, 3}));
  EXPECT_EQ(parse_tasks_per_node("0,2"), (Counts{1, 2}));
  for (const char* nothing :
       {"", "two", "2(x)", "2(x-1)", "2(x99999999)", "99999999999999999999"}) {
    EXPECT_EQ(parse_tasks_per_node(nothing), Counts{}) << nothing;
  }
}

std::string refusal_of(const std::vector<std::string>& words) {
  try {
    run_rank(words);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

/// With a fault each, since without one the program would start.
TEST(RankWords, AreRefusedUnlessAllAreWhatTheyMayBe) {
  const std::vector<std::string> numbers = {"job",   "/r", "0", "h", "1", "0", "0", "no",
                                            "words", "2",  "1", "1", "0", "2", "1", "a b"};
  EXPECT_NE(refusal_of(numbers).find("name is more than a word"), std::string::npos);
  std::vector<std::string> changed = numbers;
  changed[11] = "-1";
  EXPECT_NE(refusal_of(changed).find("word 12 is not a number"), std::string::npos);
  changed = numbers;
  changed[14] = "two";
  EXPECT_NE(refusal_of(changed).find("how many processes"), std::string::npos);
  changed[14] = "2(x1),1,1";
  changed[10] = "3";
  EXPECT_NE(refusal_of(changed).find("how many processes"), std::string::npos);
  changed = numbers;
  changed[8] = "variables";
  changed[15] = "PATH";
  EXPECT_NE(refusal_of(changed).find("word 10 is not a number"), std::string::npos)
      << "2 is no variable";
  changed[10] = "BASH_FUNC_x%%";
  EXPECT_NE(refusal_of(changed).find("BASH_FUNC_x%% is not the name"), std::string::npos);
  for (const std::vector<std::string>& few : {std::vector<std::string>{}, {"slurm"}, {"job", "/r"}})
    EXPECT_EQ(refusal_of(few), "rank: a word is missing");
  changed = numbers;
  changed[7] = "perhaps";
  changed[15] = "node";
  EXPECT_NE(refusal_of(changed).find("torchrun is yes or no, not perhaps"), std::string::npos);
  EXPECT_NE(refusal_of({"machine", "/s", "0", "x", "1", "no", "0"}).find("word 4 is not"),
            std::string::npos);
}

/// Programs that wait until the file `end` is there, as processes of a scheduler's job.
class RankTest : public testing::Test {
 protected:
  RankTest() {
    std::filesystem::create_directories(run / "machine0");
    std::filesystem::create_directories(run / "out");
    std::filesystem::create_symlink(log, run / "machine0" / "log");
    folder.write("machine0/rank",
                 "exec >> \"${DTOOL_RANK_LOG:-$1/machine0/log}\" 2>&1\n"
                 "echo one\n"
                 "until [ -e \"$1/end\" ]; do sleep 0.05; done\n");
  }

  /// Rank 0 of a machine with that many processes.
  pid_t start(const std::string& torchrun, const std::string& processes) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[0], STDIN_FILENO);
      ::close(ends[1]);
      ::_exit(run_rank({"job", run, "0", "h", "1", "0", "0", torchrun, "words", "1", "0", "0", "0",
                        processes, processes, "node"}));
    }
    ::close(ends[0]);
    words = Descriptor(ends[1]);
    return child;
  }

  template <typename Condition>
  static bool eventually(Condition holds) {
    for (int i = 0; i < 400; ++i) {
      if (holds()) return true;
      host::pause(std::chrono::milliseconds(50));
    }
    return false;
  }

  static long children() {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    return std::ranges::count(read_processes(), ::getpid(), &Process::parent);
  }

  const tests::TemporaryFolder folder;
  const std::filesystem::path run = folder.path();
  const std::filesystem::path log = run / "out" / "machine0.log";
  Descriptor words;  ///< closed: no more signals will come
};

TEST_F(RankTest, ItsNumberIsNotedUnlessItIsTorchrunWhichHasRanksOfItsOwn) {
  folder.write("end", "");
  EXPECT_EQ(wait_for_child(start("yes", "1")), 0);
  EXPECT_EQ(read_log_ranks(run / "machine0").ranks, std::set<int>{});
  EXPECT_EQ(wait_for_child(start("no", "1")), 0);
  EXPECT_EQ(read_log_ranks(run / "machine0").ranks, std::set<int>{0});
  EXPECT_EQ(read_file(log), "one\none\n");
}

TEST_F(RankTest, ThatIsKilledLeavesNoProcessThatPutsItsLinesIntoTheLog) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const long before = children();
  const pid_t rank = start("no", "2");
  ASSERT_TRUE(eventually([&] { return read_file(log) == "r0: one\n"; }));
  ::kill(rank, SIGKILL);
  ::waitpid(rank, nullptr, 0);
  EXPECT_EQ(children(), before + 3) << "the program, the merging process, the one that hears words";
  folder.write("end", "");
  EXPECT_TRUE(eventually([&] { return children() == before + 1; })) << "the one that hears words";
  words = Descriptor();
  EXPECT_TRUE(eventually([&] { return children() == before; }));
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace dtool::host
