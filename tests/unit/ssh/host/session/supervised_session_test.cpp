// SPDX-License-Identifier: MIT
// A session that supervises, and a kill that comes between two attempts.
#include "ssh/host/session/session.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/kill.h"
#include "ssh/host/network.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/job.h"
#include "tests/unit/refused_calls.h"
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

/// The sessions of a run's machines, each in its folder.
class SessionsTest : public testing::Test {
 protected:
  SessionsTest() {
    const Descriptor listener = listen_on(0);
    port_ = port_of(listener);
  }
  ~SessionsTest() override {
    for (const auto& [place, session] : sessions_) {
      ::kill(session, SIGKILL);
      wait_for_child(session);
      end_processes(folder_.path() / state(place), 0ms, {});
    }
  }

  std::string state(int place) const { return "machine" + std::to_string(place); }
  std::string read(int place, const std::string& file) const {
    return folder_.read(state(place) + "/" + file);
  }

  void start(int place, int places, const std::string& script, int restarts = 0,
             bool has_viewer = false) {
    folder_.write(state(place) + "/script", script);
    if (has_token_) folder_.write(state(place) + "/token", std::string(32, 'a') + "\n");
    Supervision settings{place, "h" + std::to_string(place), places, restarts, 60s, {}, 0, {}};
    if (places > 1) settings.address = "127.0.0.1";
    if (places > 1) settings.port = port_;
    for (int each = 0; place == 0 && each < places; ++each)
      settings.hosts.push_back("h" + std::to_string(each));
    folder_.write(state(place) + "/supervise", to_text(settings));
    const pid_t session = ::fork();
    if (session != 0) {
      sessions_[place] = session;
      return;
    }
    // The machines of a run are other hosts, and end only their own processes.
    ::setenv("DTOOL_RUN_ID", (folder_.path() / state(place)).c_str(), 1);
    ::signal(SIGPIPE, SIG_IGN);  // as dtool-host does
    other_ = Descriptor();
    if (!has_processes_) tests::refuse_processes(EAGAIN);
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = 200;
    ::setrlimit(RLIMIT_NOFILE, &files);
    std::filesystem::current_path(folder_.path() / state(place));
    const pid_t viewer = has_viewer ? start_program({"bash", "-c", "echo $$ > viewer; sleep 100"},
                                                    "", Input::nothing)
                                    : -1;
    const int code = run_supervised(settings, "log", viewer);
    const bool is_spared = viewer != -1 && ::kill(viewer, 0) == 0 && !wait_for_child(viewer, 0ms);
    if (viewer != -1) ::kill(viewer, SIGKILL);
    ::_exit(has_viewer && !is_spared ? 99 : code);
  }

  int end(int place) {
    const auto code = wait_for_child(sessions_.at(place), 40s);
    if (code) sessions_.erase(place);
    return code.value_or(-1);
  }

  bool comes(const std::function<bool()>& holds) const {
    for (int i = 0; i < 4000 && !holds(); ++i) host::pause(5ms);
    return holds();
  }

  /// The guard of that machine's session; -1: there is none.
  pid_t guard(int place) const {
    for (const Process& each : read_processes()) {
      if (each.parent == sessions_.at(place) &&
          command_of(each.pid, 100).starts_with("dtool-host guard"))
        return each.pid;
    }
    return -1;
  }

  const tests::TemporaryFolder folder_;
  std::uint16_t port_ = 0;
  Descriptor other_;  ///< that listens, and is no session's
  bool has_token_ = true;
  bool has_processes_ = true;
  std::map<int, pid_t> sessions_;
};

TEST_F(SessionsTest, ARunThatEndsWellOnAllMachinesEndsWell) {
  const std::string script =
      "echo \"$@\" > told\nuntil [ -e ../go ]; do sleep 0.02; done\nexit 0\n";
  for (const int place : {0, 1}) start(place, 2, script);
  std::map<int, pid_t> guards;
  for (const int place : {0, 1}) {
    EXPECT_TRUE(comes([&] { return (guards[place] = guard(place)) != -1; }));
    EXPECT_TRUE(comes([&] { return read(place, "supervision") == "ok\n"; }));
  }
  folder_.write("go", "");
  for (const int place : {0, 1}) {
    EXPECT_EQ(end(place), 0);
    EXPECT_EQ(::kill(guards[place], 0), -1) << "its guard stays";
    EXPECT_EQ(read(place, "exit_code"), "0\n");
    EXPECT_EQ(read(place, "told"), "0\n");
    EXPECT_EQ(read(place, "supervision"), "ok\n");
    EXPECT_EQ(read(place, "log"), "");
    EXPECT_NE(read(place, "log_times"), "");
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / state(place) / "ended"))
        << "nothing was ended";
  }
}

TEST_F(SessionsTest, TheFirstMachineMayHaveAsManyConnectionsAsTheSystemAllows) {
  for (const int place : {0, 1})
    start(place, 2, "ulimit -n > files; until [ -e ../go ]; do sleep 0.02; done\n");
  for (const int place : {0, 1}) {
    EXPECT_TRUE(comes([&] { return read(place, "supervision") == "ok\n"; }));
    rlimit files{};
    EXPECT_EQ(::prlimit(sessions_[place], RLIMIT_NOFILE, nullptr, &files), 0);
    EXPECT_EQ(files.rlim_cur, place == 0 ? files.rlim_max : 200);
  }
  folder_.write("go", "");
  for (const int place : {0, 1}) {
    EXPECT_EQ(end(place), 0);
    EXPECT_EQ(read(place, "files"), "200\n") << "its script has what it had";
  }
}

TEST_F(SessionsTest, TheLogsTimeIsNotedAlsoWhereARunIsOverAtOnce) {
  start(0, 1, "echo out\n");
  EXPECT_EQ(end(0), 0);
  EXPECT_EQ(read(0, "log"), "out\n");
  EXPECT_NE(read(0, "log_times"), "");
}

TEST_F(SessionsTest, AMachineThatComesLateIsToldThatTheRunHasFailed) {
  start(0, 2, "echo sick; exit 7\n");
  EXPECT_TRUE(comes([&] { return read(0, "exit_code") == "7\n"; }));
  start(1, 2, "sleep 100 & wait\n");
  EXPECT_NE(end(1), 0);
  EXPECT_NE(read(1, "cause").find("exit code 7: sick"), std::string::npos) << read(1, "cause");
  EXPECT_EQ(end(0), 7);
}

TEST_F(SessionsTest, AGuardThatIsGoneIsReplacedByOneThatKnowsTheAttempt) {
  start(0, 2, "if [ $1 = 0 ]; then exit 1; fi; sleep 100 & wait\n", 1);
  start(1, 2, "echo > ready.$1; sleep 100 & wait\n", 1);
  ASSERT_TRUE(comes([&] { return !read(1, "ready.1").empty(); }));
  EXPECT_EQ(read(0, "supervision"), "ok\n");
  std::filesystem::remove(folder_.path() / "machine0/supervision");
  const pid_t first = guard(1);
  ASSERT_NE(first, -1);
  ::kill(first, SIGKILL);
  ASSERT_TRUE(comes([&] { return guard(1) != -1 && guard(1) != first; }));
  // It has been told what there is once the session waits again.
  ASSERT_TRUE(comes([&] { return find_process(sessions_[1])->state == 'S'; }));
  ::kill(sessions_[1], SIGKILL);
  EXPECT_EQ(end(1), 137);
  EXPECT_NE(end(0), 0);
  EXPECT_NE(read(0, "cause").find("the session on machine 1 is gone"), std::string::npos)
      << read(0, "cause");
  EXPECT_EQ(read(0, "supervision"), "") << "the port was opened once more";
}

TEST_F(SessionsTest, AScriptThatCannotBeStartedIsToldInTheLog) {
  has_processes_ = false;
  start(0, 1, "exit 0\n");
  EXPECT_EQ(end(0), 126);
  const std::string why = "no process can be made: Resource temporarily unavailable\n";
  EXPECT_TRUE(read(0, "log").starts_with("dtool: the script does not start: " + why))
      << read(0, "log");
  EXPECT_EQ(read(0, "ended"), why);
  EXPECT_EQ(read(0, "exit_code"), "126\n");
}

/// What ends the others is a child of the session, as the script is.
TEST_F(SessionsTest, WhatEndsTheOthersIsStartedThreeTimesAtMost) {
  start(0, 1,
        "trap '' TERM\n"
        "children=/proc/$PPID/task/$PPID/children\n"
        "script=$$\n"
        "echo > go_on\n"
        "( while [ -e go_on ]; do for each in $(cat $children); do\n"
        "  [ $each = $script ] || { kill -KILL $each && echo $each >> ended_first; }\n"
        "done; done; echo > over ) &\n"
        "exit 1\n");
  EXPECT_EQ(end(0), 1);
  std::filesystem::remove(folder_.path() / "machine0/go_on");
  EXPECT_TRUE(comes([&] { return !read(0, "over").empty(); }));
  EXPECT_EQ(read(0, "ended"), "the process that ends the others was killed\n");
  std::set<std::string> ended_first;
  std::istringstream lines(read(0, "ended_first"));
  for (std::string line; std::getline(lines, line);) ended_first.insert(line);
  EXPECT_EQ(ended_first.size(), 3U);
}

TEST_F(SessionsTest, LinesThatAreInTheFilesOfRanksAloneAreToldAtTheEndOfAnAttempt) {
  start(0, 1,
        "if [ $1 = 0 ]; then echo out; echo > merging.0; exit 1; fi\n"
        "cp log first_log; echo > merging.0\n",
        1);
  EXPECT_EQ(end(0), 0);
  const std::string words = "the ranks' last lines may be in ";
  EXPECT_NE(read(0, "first_log").find(words), std::string::npos) << read(0, "first_log");
  const std::string log = read(0, "log");
  EXPECT_NE(log.find(words), log.rfind(words)) << log;
  EXPECT_TRUE(read(0, "earlier_failure").starts_with("0 4 ")) << "the log's bytes until then";
}

TEST_F(SessionsTest, AMachineThatFailsHasTheOthersEnded) {
  start(0, 2, "echo > ready\nsleep 100 & wait\n");
  start(1, 2, "until [ -e ../machine0/ready ]; do sleep 0.02; done; exit 7\n");
  EXPECT_EQ(end(1), 7);
  EXPECT_NE(end(0), 0);
  EXPECT_NE(read(0, "ended").find("ended="), std::string::npos) << read(0, "ended");
  EXPECT_NE(read(0, "log").find("machine 1"), std::string::npos) << read(0, "log");
}

TEST_F(SessionsTest, ARunIsStartedAgainAfterAFailureWithoutWhatWasLeft) {
  folder_.write("machine0/stopped_rank", "0\n");
  start(0, 1,
        "if [ $1 = 0 ]; then sleep 100 & echo $! > left; exit 1; fi\n"
        "[ -e stopped_rank ] && exit 5\nexit 0\n",
        1, true);
  EXPECT_EQ(end(0), 0) << "and its viewer is spared";
  EXPECT_NE(read(0, "log").find("attempt 2 of 2 begins"), std::string::npos);
  EXPECT_EQ(read(0, "exit_code"), "0\n");
  ASSERT_NE(read(0, "left"), "");
  EXPECT_EQ(::kill(std::stoi(read(0, "left")), 0), -1);
  EXPECT_TRUE(read(0, "ended").starts_with("ended=1\n")) << read(0, "ended");
  EXPECT_EQ(read(0, "supervision"), "") << "there is no other machine";
}

TEST_F(SessionsTest, AnotherAttemptIsTheSameRunOnAllMachines) {
  for (const int place : {0, 1})
    start(
        place, 2,
        "echo \"$@\" >> told\nif [ $1 = 0 ] && [ $PWD = " + (folder_.path() / "machine1").string() +
            " ]; then exit 1; fi\n"
            "[ $1 = 0 ] || exit 0; sleep 100 & wait\n",
        1);
  for (const int place : {0, 1}) {
    EXPECT_EQ(end(place), 0) << read(place, "log");
    EXPECT_TRUE(read(place, "told").ends_with("1 0 1\n")) << read(place, "told");
  }
}

TEST_F(SessionsTest, WithoutATokenNothingIsReported) {
  has_token_ = false;
  start(1, 2, "sleep 100\n");
  EXPECT_TRUE(comes([&] { return !read(1, "supervision").empty(); }));
  EXPECT_EQ(read(1, "supervision"),
            "the token is missing on machine 1: its failures are not reported\n");
}

TEST_F(SessionsTest, WhereAnotherProgramHasThePortTheRunIsNotSupervisedUntilItIsGivenBack) {
  other_ = listen_on(port_);
  start(0, 2, "sleep 100\n");
  const std::string why =
      "cannot listen on port " + std::to_string(port_) + ": Address already in use\n";
  EXPECT_TRUE(comes([&] { return read(0, "supervision") == why; })) << read(0, "supervision");
  EXPECT_TRUE(comes([&] {
    return read(0, "log") ==
           "dtool: the run is not supervised, and a failure may not end it: " + why;
  })) << read(0, "log");
  const std::string log = read(0, "log");
  EXPECT_TRUE(comes([&] { return !read(0, "log_times").empty(); }));
  other_ = Descriptor();
  EXPECT_TRUE(comes([&] { return read(0, "supervision") == "ok\n"; })) << "it is given back";
  EXPECT_EQ(read(0, "log"), log) << "it is said once";
}

TEST(OutOfMemoryKills, AreWhatTheKernelCounts) {
  EXPECT_EQ(out_of_memory_kills("nr_free_pages 12\noom_kill 7\nnuma_hit 3\n"), 7U);
  EXPECT_EQ(out_of_memory_kills("nr_free_pages 12\n"), std::nullopt);
  EXPECT_EQ(out_of_memory_kills(""), std::nullopt);
}

}  // namespace
}  // namespace dtool::host
