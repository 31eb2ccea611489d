// SPDX-License-Identifier: MIT
// The processes of one machine: what they are told, which signals reach them, and what happens
// where one of them fails.
#include "ssh/host/session/rank.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <iostream>
#include <stdexcept>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"
#include "ssh/host/session/job.h"
#include "ssh/wire/words.h"
#include "tests/unit/refused_calls.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

/// The ranks 4 and on, of attempt 2 on machine 1, each of which runs a script. Their words to the
/// terminal are in the file `said`.
class RanksTest : public testing::Test {
 protected:
  RanksTest() {
    folder_.write("machine1.log", "");
    folder_.write("machine1/said", "");
    std::filesystem::create_symlink(folder_.path() / "machine1.log", state() / "log");
  }

  ~RanksTest() override {
    if (ranks_ > 0) ::kill(ranks_, SIGKILL);
  }

  std::filesystem::path state() const { return folder_.path() / "machine1"; }

  std::vector<std::string> words(int processes, const std::string& script) {
    folder_.write("machine1/program", "cd '" + folder_.path().string() + "'\n" + script);
    return {state(),
            "2",
            "1",
            "4",
            std::to_string(processes),
            rendezvous_,
            fill_,
            "bash",
            state() / "program",
            "{rank}.{local_rank}"};
  }

  [[noreturn]] void become(const std::vector<std::string>& words) noexcept {
    const int said = ::open((state() / "said").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    ::dup2(said, STDERR_FILENO);
    // A shell's background processes ignore INT, and the ranks would inherit that.
    for (const int each : {SIGINT, SIGHUP}) ::signal(each, SIG_DFL);
    ::signal(SIGPIPE, SIG_IGN);  // as dtool-host does
    for (const char* each : {"RANK", "LOCAL_RANK", "ROLE_RANK"}) ::unsetenv(each);
    ::_exit(run_ranks(words));
  }

  void start(const std::vector<std::string>& words) {
    ranks_ = ::fork();
    if (ranks_ == 0) become(words);
  }

  std::optional<int> wait() {
    const auto code = wait_for_child(ranks_, 20s);
    if (code) ranks_ = -1;
    return code;
  }

  int run(int processes, const std::string& script) {
    start(words(processes, script));
    return wait().value_or(-1);
  }

  std::string state_file(const std::string& name) { return folder_.read("machine1/" + name); }
  std::string said() { return state_file("said"); }

  bool comes(const std::function<bool()>& is_there) {
    for (int i = 0; i < 2000 && !is_there(); ++i) host::pause(5ms);
    return is_there();
  }

  /// A file of each of two ranks.
  bool are_there(const std::string& file) {
    return std::filesystem::exists(folder_.path() / (file + ".4.0")) &&
           std::filesystem::exists(folder_.path() / (file + ".5.1"));
  }

  const tests::TemporaryFolder folder_;
  std::string rendezvous_ = "env";
  std::string fill_ = "yes";
  pid_t ranks_ = -1;
};

const std::string kTellVariables = "echo \"$RANK,$LOCAL_RANK,$ROLE_RANK\" > told.$1\n";

TEST_F(RanksTest, AreToldTheirNumbersAsTheirRendezvousNeedsThem) {
  for (const auto& [rendezvous, first, second] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"env", "4,0,4\n", "5,1,5\n"},
           {"never", ",,\n", ",,\n"},
           {"independent", "0,0,0\n", "0,0,0\n"}}) {
    rendezvous_ = rendezvous;
    EXPECT_EQ(run(2, kTellVariables), 0);
    EXPECT_EQ(folder_.read("told.4.0"), first) << rendezvous;
    EXPECT_EQ(folder_.read("told.5.1"), second) << rendezvous;
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "told.6.2"));
    EXPECT_EQ(state_file("first_failure"), "dtool's own process\n") << "none failed";
    EXPECT_FALSE(std::filesystem::exists(state() / "stopped_rank")) << "none was stopped";
    EXPECT_EQ(said(), "");
  }
}

TEST_F(RanksTest, TheFirstOnesHaveNumbersFromNought) {
  std::vector<std::string> first = words(1, kTellVariables);
  for (const std::size_t number : {1U, 2U, 3U}) first[number] = "0";
  start(first);
  EXPECT_EQ(wait(), 0);
  EXPECT_EQ(folder_.read("told.0.0"), "0,0,0\n");
}

TEST_F(RanksTest, OfASessionSayNothingOfAnAftermath) {
  folder_.write("machine1/supervise", "");
  EXPECT_EQ(run(2,
                "if [ $RANK = 4 ]; then echo Connection closed by peer; exit 1; fi\n"
                "until [ -e go ]; do sleep 0.02; done; echo > went_on\n"),
            1);
  folder_.write("go", "");
  EXPECT_TRUE(comes([&] { return std::filesystem::exists(folder_.path() / "went_on"); }));
  EXPECT_EQ(said(), "") << "the session may know better";
}

TEST_F(RanksTest, GoOnWritingAfterWhatMergesTheirLinesWasKilled) {
  start(words(2,
              "echo one $1; echo > ready.$1\nuntil [ -e go ]; do sleep 0.02; done; echo two $1\n"));
  ASSERT_TRUE(comes([&] { return are_there("ready"); }));
  const auto merging = [this] {
    const auto self = find_process(ranks_);
    const auto all = read_processes();
    const auto found = std::ranges::find_if(all, [&](const Process& each) {
      return self && each.parent == ranks_ && each.name == self->name && !each.is_dead();
    });
    return found == all.end() ? -1 : found->pid;
  };
  ASSERT_TRUE(comes([&] { return merging() > 0; }));
  const pid_t first = merging();
  ::kill(first, SIGKILL);
  EXPECT_TRUE(comes([&] { return merging() > 0 && merging() != first; }));
  folder_.write("go", "");
  EXPECT_EQ(wait(), 0);
  const std::string log = folder_.read("machine1.log");
  for (const char* line : {"r4: one 4.0\n", "r4: two 4.0\n", "r5: one 5.1\n", "r5: two 5.1\n"})
    EXPECT_NE(log.find(line), log.npos) << log;
}

TEST_F(RanksTest, HaveTheirWordsAsTheyAreIfNothingIsToBeFilledIn) {
  fill_ = "no";
  EXPECT_EQ(run(1, kTellVariables), 0);
  EXPECT_EQ(folder_.read("told.{rank}.{local_rank}"), "4,0,4\n");
}

TEST_F(RanksTest, ReadNothingUnlessOneIsAlone) {
  const std::string script =
      "readlink /proc/self/fd/0 > input.$1\n"
      "echo \"$DTOOL_LAST_WORDS\" > words.$1\n";
  const int before = ::dup(STDIN_FILENO);
  const int input = ::open(folder_.write("input", "").c_str(), O_RDONLY | O_CLOEXEC);
  ::dup2(input, STDIN_FILENO);
  EXPECT_EQ(run(2, script), 0);
  for (const char* each : {"input.4.0", "input.5.1"}) EXPECT_EQ(folder_.read(each), "/dev/null\n");
  EXPECT_EQ(folder_.read("words.5.1"), (state() / "last_words.2.5").string() + "\n");
  EXPECT_EQ(run(1, script), 0);
  ::dup2(before, STDIN_FILENO);
  ::close(input);
  ::close(before);
  EXPECT_EQ(folder_.read("input.4.0"), (folder_.path() / "input").string() + "\n");
}

TEST_F(RanksTest, WriteTheirLinesIntoTheLogIfTheyAreSeveral) {
  EXPECT_EQ(run(2, "echo out $1\necho err $1 >&2\n"), 0);
  const std::string log = folder_.read("machine1.log");
  for (const char* line : {"out 4.0\n", "err 4.0\n", "out 5.1\n", "err 5.1\n"})
    EXPECT_NE(log.find(line), log.npos) << log;
  EXPECT_EQ(said(), "");
  std::vector<std::string> files = list_folder(rank_folder(state()));
  std::ranges::sort(files);
  EXPECT_EQ(files, (std::vector<std::string>{"r4.attempt3.log", "r5.attempt3.log"}));
}

TEST_F(RanksTest, ALineWithoutAnEndIsInTheLogOnceItsRankHasEnded) {
  start(words(2,
              "if [ $RANK = 4 ]; then printf 'last words'; exit 0; fi\n"
              "until [ -e go ]; do sleep 0.02; done\n"));
  EXPECT_TRUE(comes([&] { return folder_.read("machine1.log") == "r4: last words\n"; }))
      << folder_.read("machine1.log");
  folder_.write("go", "");
  EXPECT_EQ(wait(), 0);
}

TEST_F(RanksTest, WithoutAProcessForThemThereIsAnError) {
  const std::vector<std::string> alone = words(1, "exit 0\n");
  EXPECT_EXIT(
      {
        tests::refuse_processes(EAGAIN);
        try {
          run_ranks(alone);
        } catch (const std::runtime_error& error) {
          std::cerr << error.what();
          ::_exit(0);
        }
        ::_exit(1);
      },
      testing::ExitedWithCode(0), "^no process can be made: Resource temporarily unavailable$");
}

/// As a user who may have two processes.
TEST_F(RanksTest, AreEndedWhereNotAllCanBeStarted) {
  constexpr uid_t kAnother = 61'234;
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  for (const auto& each : {folder_.path(), state()})
    std::filesystem::permissions(each, std::filesystem::perms::all);
  const std::vector<std::string> two = words(2, "echo $$ > pid\nwhile :; do :; done\n");
  const rlimit few{2, 2};
  EXPECT_EXIT(
      {
        ::setrlimit(RLIMIT_NPROC, &few);
        if (::setuid(kAnother) != 0) ::_exit(98);
        try {
          run_ranks(two);
        } catch (const std::runtime_error& error) {
          std::cerr << error.what();
          ::_exit(0);
        }
        ::_exit(1);
      },
      testing::ExitedWithCode(0), "^no process can be made: Resource temporarily unavailable$");
  host::pause(300ms);
  for (const auto& each : std::filesystem::directory_iterator("/proc")) {
    struct stat owner {};
    if (::lstat(each.path().c_str(), &owner) != 0) continue;
    EXPECT_NE(owner.st_uid, kAnother) << each.path() << " goes on";
  }
}

TEST_F(RanksTest, ThatCannotBeStartedSayWhy) {
  std::vector<std::string> missing = words(1, "");
  missing[7] = "/no/such program";
  missing.resize(8);
  start(missing);
  EXPECT_EQ(wait(), kCannotRun);
  EXPECT_EQ(said(), "dtool: /no/such program: No such file or directory\n");
}

TEST_F(RanksTest, AreRefusedWithoutTheirWords) {
  const std::vector<std::string> whole = words(1, "");
  EXPECT_THROW(run_ranks({whole.begin(), whole.begin() + 7}), std::runtime_error);
  for (const std::size_t number : {1U, 2U, 3U, 4U}) {
    std::vector<std::string> spoilt = whole;
    spoilt[number] = number == 4 ? "0" : "-1";
    EXPECT_THROW(run_ranks(spoilt), std::runtime_error) << number;
  }
}

TEST_F(RanksTest, AlonePassItsExitCodeOnAndIsSilentIfItLeftNoWords) {
  EXPECT_EQ(run(1, "exit 7\n"), 7);
  EXPECT_EQ(state_file("first_failure"), "4\n");
  EXPECT_EQ(said(), "");
  EXPECT_EQ(run(1, "kill -SEGV $$\n"), 139);
  EXPECT_EQ(run(1, "echo no memory > $DTOOL_LAST_WORDS; exit 1\n"), 1);
  EXPECT_EQ(said(), "dtool: rank 4 on machine 1 ended with exit code 1: no memory\n");
}

TEST_F(RanksTest, OfASessionAreLeftToItAndItTellsTheWords) {
  folder_.write("machine1/supervise", "");
  EXPECT_EQ(run(1, "echo no memory > $DTOOL_LAST_WORDS; exit 1\n"), 1);
  EXPECT_EQ(said(), "");
  EXPECT_EQ(run(2,
                "if [ $RANK = 5 ]; then exit 7; fi\n"
                "trap 'echo > heard' TERM\n"
                "until [ -e go ]; do sleep 0.02; done; echo > went_on\n"),
            7);
  EXPECT_EQ(state_file("first_failure"), "5\n");
  EXPECT_EQ(said(),
            "dtool: rank 5 on machine 1 ended with exit code 7; the others of this machine are "
            "ended too\n");
  folder_.write("go", "");
  EXPECT_TRUE(comes([&] { return std::filesystem::exists(folder_.path() / "went_on"); }));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "heard"));
}

TEST_F(RanksTest, WhatFollowsFromAFailureWaitsForIt) {
  const std::string script =
      "if [ $RANK = 4 ]; then echo Connection closed by peer; echo > followed; exit 1; fi\n"
      "until [ -e followed ]; do sleep 0.02; done; sleep 0.2; exit 5\n";
  EXPECT_EQ(run(2, script), 5);
  EXPECT_EQ(state_file("first_failure"), "5\n");
  EXPECT_EQ(said(), "dtool: rank 5 on machine 1 ended with exit code 5\n");
}

TEST_F(RanksTest, TheFirstFailureStaysWhereAnotherComesLater) {
  rendezvous_ = "independent";
  EXPECT_EQ(run(2,
                "if [ $1 = 4.0 ]; then until [ -e first ]; do sleep 0.02; done; sleep 0.1; exit 3; "
                "fi\necho > first; exit 7\n"),
            7);
  EXPECT_EQ(state_file("first_failure"), "5\n");
}

TEST_F(RanksTest, ThatAreIndependentGoOnAfterAFailure) {
  rendezvous_ = "independent";
  EXPECT_EQ(run(2,
                "if [ $1 = 4.0 ]; then exit 7; fi\n"
                "sleep 0.3; echo > went_on\n"),
            7);
  EXPECT_EQ(folder_.read("went_on"), "\n");
}

TEST_F(RanksTest, HearTheSignalsOfOthersThanDtoolThroughIt) {
  for (const auto& [signal, name] : std::vector<std::pair<int, std::string>>{
           {SIGUSR1, "USR1"}, {SIGTERM, "TERM"}, {SIGINT, "INT"}}) {
    start(words(2, "trap 'echo > heard." + name + ".$1' " + name + "\necho > ready." + name +
                       ".$1\nuntil [ -e heard." + name + ".$1 ]; do sleep 0.02; done\n"));
    ASSERT_TRUE(comes([&, signal_name = name] { return are_there("ready." + signal_name); }));
    ::kill(ranks_, signal);
    EXPECT_EQ(wait(), 0);
    EXPECT_TRUE(are_there("heard." + name)) << name;
  }
}

TEST_F(RanksTest, AreWaitedForOnceTheyAreToldToEnd) {
  start(words(2,
              "if [ $1 = 4.0 ]; then trap 'exit 9' TERM; "
              "else trap 'sleep 0.3; echo > saved; exit 0' TERM; fi\n"
              "echo > ready.$1\nfor _ in {1..500}; do sleep 0.02; done\n"));
  ASSERT_TRUE(comes([&] { return are_there("ready"); }));
  ::kill(ranks_, SIGTERM);
  EXPECT_EQ(wait(), 9);
  EXPECT_EQ(folder_.read("saved"), "\n") << "it had the time that it needed";
  EXPECT_EQ(said(), "");
}

TEST_F(RanksTest, OneThatASignalStopsIsNoted) {
  start(words(
      2, "echo $$ > pid.$1.new; mv pid.$1.new pid.$1\nuntil [ -e go ]; do sleep 0.02; done\n"));
  ASSERT_TRUE(comes([&] { return folder_.read("pid.5.1") != ""; }));
  const pid_t rank = std::stoi(folder_.read("pid.5.1"));
  ::kill(rank, SIGSTOP);
  EXPECT_TRUE(comes([&] { return state_file("stopped_rank") == "5\n"; }));
  ::kill(rank, SIGCONT);
  EXPECT_TRUE(comes([&] { return state_file("stopped_rank") == "\n"; }));
  folder_.write("go", "");
  EXPECT_EQ(wait(), 0);
}

TEST_F(RanksTest, LoseTheTerminalThemselvesButNotWhatKeepsThem) {
  start(words(1, "echo > ready; for _ in {1..500}; do sleep 0.02; done\n"));
  ASSERT_TRUE(comes([&] { return folder_.read("ready") != ""; }));
  ::kill(ranks_, SIGHUP);
  ::kill(ranks_, SIGTERM);
  EXPECT_EQ(wait(), 143);
  EXPECT_EQ(run(1, "kill -HUP $$; exit 3\n"), 129);
  EXPECT_EQ(run(1, "kill -PIPE $$; exit 3\n"), 141);
}

TEST_F(RanksTest, AreEndedByTermAndThenByKillOnceOneHasFailed) {
  EXPECT_EQ(run(2,
                "if [ \"$RANK\" = 4 ]; then until [ -e ready ]; do sleep 0.05; done; exit 7; fi\n"
                "trap 'echo TERM > heard' TERM\n"
                "echo $$ > ready\n"
                "for _ in {1..600}; do sleep 0.05; done\n"
                "echo > outlived\n"),
            7);
  EXPECT_EQ(state_file("first_failure"), "4\n");
  EXPECT_EQ(folder_.read("heard"), "TERM\n");
  ASSERT_NE(folder_.read("ready"), "");
  EXPECT_EQ(::kill(std::stoi(folder_.read("ready")), 0), -1) << "it goes on";
}

}  // namespace
}  // namespace dtool::host
