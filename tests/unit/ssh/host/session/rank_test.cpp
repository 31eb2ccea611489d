// SPDX-License-Identifier: MIT
// A process that a launcher starts: the numbers that it is told.
#include "ssh/host/session/rank.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <list>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"
#include "ssh/host/session/job.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using Counts = std::vector<int>;

TEST(SlurmText, TasksOfEachNodeAreReadAsSlurmWritesThem) {
  EXPECT_EQ(parse_tasks_per_node("2(x3)"), (Counts{2, 2, 2}));
  EXPECT_EQ(parse_tasks_per_node("4,1(x2),3"), (Counts{4, 1, 1, 3}));
  EXPECT_EQ(parse_tasks_per_node("0,2"), (Counts{1, 2}));
  EXPECT_EQ(parse_tasks_per_node("1024"), Counts{1024});
  EXPECT_EQ(parse_tasks_per_node("3(x100000)"), Counts(100'000, 3));
  for (const char* nothing : {"", "two", "2(x)", "2(x-1)", "2(x99999999)", "99999999999999999999",
                              "1025", "1,2(x100000)", "2(x100001)", "2)", "1,two"}) {
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
  for (const std::size_t number : {2U, 4U, 5U, 6U, 9U, 10U, 11U, 12U, 13U}) {
    changed = numbers;
    changed[number] = "x";
    EXPECT_NE(refusal_of(changed).find("word " + std::to_string(number + 1) + " is not a number"),
              std::string::npos)
        << number;
  }
  changed = numbers;
  changed[15] = "node";
  changed.emplace_back("one more");
  EXPECT_EQ(refusal_of(changed), "rank: a word is missing");
  changed = numbers;
  changed[8] = "perhaps";
  EXPECT_EQ(refusal_of(changed), "rank: a word is missing");
  changed[8] = "variables";
  changed[9] = "";
  EXPECT_NE(refusal_of(changed).find(" is not the name of a variable"), std::string::npos);
  EXPECT_NE(refusal_of({"machine", "/s", "0", "0", "1"}), "");
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
  EXPECT_TRUE(eventually([&] { return children() == before + 2; }))
      << "the program and the merging process; the one that hears words ends with the rank";
  folder.write("end", "");
  EXPECT_TRUE(eventually([&] { return children() == before; }));
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/// Processes of launchers, whose script writes what it is told and does `then`.
class StartedRank : public testing::Test {
 protected:
  StartedRank() {
    std::filesystem::create_directories(state / "ranks");
    std::filesystem::create_symlink(folder.path() / "machine3.log", state / "log");
    folder.write("machine3.log", "");
  }
  ~StartedRank() override {
    if (rank <= 0) return;
    ::kill(rank, SIGKILL);
    wait_for_child(rank);
  }

  static constexpr const char* kTell =
      "read -r _ _ _ _ _ sid _ < /proc/$$/stat\n"
      "told=\"$*\\n$DTOOL_LAST_WORDS\\n$DTOOL_HOST\\n$DTOOL_RANK_LOG\\n$DTOOL_RUN_ID\\n\"\n"
      "[ $sid = $$ ] && own=alone || own=together\n"
      "exec >> \"${DTOOL_RANK_LOG:-$FOLDER/machine3.log}\" 2>&1\n"
      "printf \"$told$own\" > \"$FOLDER/told.new\"; mv \"$FOLDER/told.new\" \"$FOLDER/told\"\n"
      "cd \"$FOLDER\"\n";
  /// Until the file `end` is there, it notes signals.
  static constexpr const char* kHear =
      "trap 'echo TERM >> heard' TERM; trap 'echo USR1 >> heard' USR1; trap 'echo INT >> heard' "
      "INT\n"
      "echo > ready\nuntil [ -e end ]; do sleep 0.02; done\n";

  void start(const std::vector<std::string>& arguments) {
    const tests::TemporaryVariable of_script("FOLDER", folder.path());
    int ends[2] = {-1, -1};
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    rank = ::fork();
    if (rank == 0) {
      ::dup2(ends[0], STDIN_FILENO);
      for (const int each : ends) ::close(each);
      for (const char* each : {"DTOOL_LAST_WORDS", "DTOOL_HOST", "DTOOL_RANK_LOG", "DTOOL_RUN_ID"})
        ::unsetenv(each);
      std::filesystem::current_path(state);
      ::_exit(run_rank(arguments));
    }
    ::close(ends[0]);
    words = Descriptor(ends[1]);
  }

  void start_on_machine(const std::string& then, const std::string& processes = "1") {
    folder.write("machine3/rank", kTell + then);
    start({"machine", state, "5", "1", processes, "no", "2", "0", "3"});
  }
  void start_in_job(const std::string& then, const std::string& processes = "3,2,1") {
    folder.write("machine0/rank", kTell + then);
    start({"job", folder.path(), "1", "h", "2345", "7", "2", "no", "words", "3", "1", "4", "0", "6",
           processes, "node"});
  }

  int end() {
    const auto code = wait_for_child(rank, std::chrono::seconds(20));
    if (code) rank = -1;
    return code.value_or(-1);
  }
  template <typename Condition>
  static bool comes(Condition holds) {
    for (int i = 0; i < 4000 && !holds(); ++i) host::pause(std::chrono::milliseconds(5));
    return holds();
  }
  bool is_there(const std::string& file) const {
    return std::filesystem::exists(folder.path() / file);
  }
  std::string told(const std::string& arguments, const std::string& last_words,
                   const std::string& log, const std::string& run, const std::string& own) const {
    const std::string last = last_words.empty() ? "" : (state / last_words).string();
    return arguments + "\n" + last + "\n/proc/" + std::to_string(rank) + "/exe\n" + log + "\n" +
           run + "\n" + own;
  }
  bool hears(const std::string& text) {
    return comes([&] { return folder.read("heard") == text; });
  }

  /// The child that is no program: it hears words, or merges the ranks' lines. -1: there is none.
  pid_t helper() const {
    const std::string name = find_process(rank)->name;
    const auto all = read_processes();
    const auto found = std::ranges::find_if(all, [&](const Process& each) {
      return each.parent == rank && each.name == name && !each.is_dead();
    });
    return found == all.end() ? -1 : found->pid;
  }

  const tests::TemporaryFolder folder;
  const std::filesystem::path state = folder.path() / "machine3";
  pid_t rank = -1;
  Descriptor words;
};

TEST_F(StartedRank, OfAMachineIsToldItsPlaceAndRecordsItselfForTheSession) {
  start_on_machine("echo out; until [ -e end ]; do sleep 0.02; done; exit 7\n");
  ASSERT_TRUE(comes([&] { return is_there("told"); }));
  EXPECT_EQ(folder.read("told"), told("5 1 2 0 3", "", "", "", "alone"));
  const Process self = find_process(rank).value();
  EXPECT_EQ(folder.read("machine3/ranks/2.1"),
            std::to_string(rank) + " " + std::to_string(self.start) + "\n");
  ASSERT_TRUE(comes([&] { return is_there("machine3/ranks/2.1.program"); }));
  const pid_t program = std::stoi(folder.read("machine3/ranks/2.1.program"));
  EXPECT_EQ(find_process(program)->parent, rank);
  folder.write("end", "");
  EXPECT_EQ(end(), 7);
  EXPECT_EQ(folder.read("machine3/ranks/2.1.code"), "7\n");
  EXPECT_FALSE(is_there("machine3/ranks/2.1.told"));
  EXPECT_FALSE(is_there("machine3/log_times")) << "the session notes them";
  EXPECT_EQ(read_log_ranks(state).ranks, std::set<int>{5});
  EXPECT_EQ(folder.read("machine3.log"), "out\n");
}

TEST_F(StartedRank, OfASupervisedMachineHasAPlaceForItsLastWords) {
  folder.write("machine3/supervise", "");
  start_on_machine("echo out\n", "2");
  const std::string log = rank_log(state, 2, 5);
  const std::string wanted = told("5 1 2 0 3", "last_words.2.5", log, "", "alone");
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(folder.read("told"), wanted);
  EXPECT_EQ(folder.read("machine3.log"), "r5: out\n");
}

TEST_F(StartedRank, ReplacesAMergingProcessThatWasKilledWhileTheProgramGoesOn) {
  start_on_machine("until [ -e go_on ]; do sleep 0.02; done\necho out\n" + std::string(kHear), "2");
  // Before that the program may still bear the name of the process that starts it.
  ASSERT_TRUE(comes([&] { return is_there("told") && helper() > 0; }));
  const pid_t first = helper();
  ::kill(first, SIGKILL);
  EXPECT_TRUE(comes([&] { return helper() > 0 && helper() != first; }));
  folder.write("go_on", "");
  EXPECT_TRUE(comes([&] { return folder.read("machine3.log") == "r5: out\n"; }));
  folder.write("end", "");
  EXPECT_EQ(end(), 0);
}

TEST_F(StartedRank, HandsTermOnOnceAndUsr1EachTime) {
  start_on_machine(kHear + std::string("exit 3\n"));
  ASSERT_TRUE(comes([&] { return is_there("ready"); }));
  write_all(words.get(), "TERM\nUSR1\n");  // which are a job's alone
  ::kill(rank, SIGUSR1);
  EXPECT_TRUE(hears("USR1\n"));
  EXPECT_FALSE(is_there("machine3/ranks/2.1.told"));
  ::kill(rank, SIGTERM);
  EXPECT_TRUE(hears("USR1\nTERM\n"));
  EXPECT_TRUE(is_there("machine3/ranks/2.1.told"));
  for (const int each : {SIGTERM, SIGINT}) ::kill(rank, each);
  ::kill(rank, SIGUSR1);
  EXPECT_TRUE(hears("USR1\nTERM\nUSR1\n"));
  folder.write("end", "");
  EXPECT_EQ(end(), 3);
  EXPECT_EQ(folder.read("heard"), "USR1\nTERM\nUSR1\n");
}

TEST_F(StartedRank, HandsIntOn) {
  start_on_machine(kHear + std::string("exit 3\n"));
  ASSERT_TRUE(comes([&] { return is_there("ready"); }));
  ::kill(rank, SIGINT);
  EXPECT_TRUE(hears("INT\n"));
  folder.write("end", "");
  EXPECT_EQ(end(), 3);
}

TEST_F(StartedRank, OfAJobIsToldAllNumbersAndRecordsItsEnd) {
  start_in_job("echo out; until [ -e end ]; do sleep 0.02; done; exit 7\n");
  const std::string run = folder.path();
  ASSERT_TRUE(comes([&] { return is_there("told"); }));
  EXPECT_EQ(folder.read("told"), told(run + " 1 h 2345 7 3 3 1 4 0 6 2 node", "last_words.1.4",
                                      rank_log(state, 1, 4), folder.path().filename(), "alone"));
  EXPECT_FALSE(is_there("machine3/ranks/4")) << "there is no session that reads it";
  folder.write("end", "");
  EXPECT_EQ(end(), 7);
  EXPECT_EQ(folder.read("machine3/ranks/4"), "7 \n");
  EXPECT_EQ(folder.read("machine3.log"), "r4: out\n");
  EXPECT_TRUE(is_there("machine3/log_times"));
  EXPECT_FALSE(is_there("machine3/ranks/4.code"));
}

TEST_F(StartedRank, OfAJobMayHaveItsNumbersInVariables) {
  folder.write("machine0/rank", kTell);
  const std::vector<std::string> names = {"T_MACHINES", "T_MACHINE", "T_RANK",     "T_LOCAL",
                                          "T_WORLD",    "T_TASKS",   "T_NODE_NAME"};
  const std::vector<std::string> values = {"2", "1", "4", "0", "6", "3,2", "node"};
  std::list<tests::TemporaryVariable> variables;
  for (std::size_t i = 0; i < names.size(); ++i) variables.emplace_back(names[i], values[i]);
  std::vector<std::string> arguments = {"job", folder.path(), "1",  "h",        "2345",
                                        "7",   "2",           "no", "variables"};
  arguments.insert(arguments.end(), names.begin(), names.end());
  start(arguments);
  const std::string wanted =
      told(folder.path().string() + " 1 h 2345 7 3 2 1 4 0 6 2 node", "last_words.1.4",
           rank_log(state, 1, 4), folder.path().filename(), "together");
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(folder.read("told"), wanted);
  variables.clear();
  EXPECT_NE(refusal_of(arguments).find("word 10 is not a number"), std::string::npos);
}

TEST_F(StartedRank, OfAJobHearsWordsInPieces) {
  start_in_job(kHear + std::string("exit 3\n"));
  ASSERT_TRUE(comes([&] { return is_there("ready"); }));
  write_all(words.get(), "US");
  write_all(words.get(), "R1\nHUP\nusr1\n");
  EXPECT_TRUE(hears("USR1\n"));
  write_all(words.get(), "\nUSR1\nTE");
  EXPECT_TRUE(hears("USR1\nUSR1\n"));
  write_all(words.get(), "RM\n");
  EXPECT_TRUE(hears("USR1\nUSR1\nTERM\n"));
  folder.write("end", "");
  EXPECT_EQ(end(), 3);
  EXPECT_EQ(folder.read("machine3/ranks/4"), "3 told\n");
  EXPECT_FALSE(is_there("machine3/ranks/4.told"));
  EXPECT_TRUE(comes([&] {
    pollfd unread{words.get(), POLLOUT, 0};
    return ::poll(&unread, 1, 0) == 1 && (unread.revents & POLLERR) != 0;
  })) << "the process that hears words stays";
}

TEST_F(StartedRank, OfAJobTakesUsr2ForItsEnd) {
  start_in_job(kHear + std::string("exit 3\n"));
  ASSERT_TRUE(comes([&] { return is_there("ready"); }));
  ::kill(rank, SIGUSR2);
  EXPECT_TRUE(hears("TERM\n"));
  folder.write("end", "");
  EXPECT_EQ(end(), 3);
  EXPECT_EQ(folder.read("machine3/ranks/4"), "3 told\n");
}

TEST_F(StartedRank, OfAJobHearsWordsAlsoAfterWhatHearsThemWasKilled) {
  start_in_job(kHear + std::string("exit 3\n"), "1,1,1");
  ASSERT_TRUE(comes([&] { return is_there("ready"); }));
  const pid_t first = helper();
  ASSERT_GT(first, 0);
  EXPECT_EQ(::getsid(first), first);
  ::kill(first, SIGKILL);
  EXPECT_TRUE(comes([&] { return helper() > 0 && helper() != first; }));
  write_all(words.get(), "USR1\n");
  EXPECT_TRUE(hears("USR1\n"));
  words = Descriptor();
  EXPECT_TRUE(comes([&] { return helper() == -1; }));
  folder.write("end", "");
  EXPECT_EQ(end(), 3);
}

TEST_F(StartedRank, OfAJobThatLostAnotherIsNotTheFailure) {
  start_in_job("echo Connection closed by peer; exit 1\n");
  EXPECT_TRUE(comes([&] { return is_there("machine3/ranks/4"); }));
  ::kill(rank, SIGTERM);  // which it waits for
  EXPECT_EQ(end(), 1);
  EXPECT_EQ(folder.read("machine3/ranks/4"), "1 told\n");
}

}  // namespace
}  // namespace dtool::host
