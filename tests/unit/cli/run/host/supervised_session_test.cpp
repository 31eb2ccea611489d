// SPDX-License-Identifier: MIT
// A session that supervises, and a kill that comes between two attempts.
#include "cli/run/host/supervised_session.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include "cli/run/host/job.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/network.h"
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

  const tests::TemporaryFolder folder_;
  std::uint16_t port_ = 0;
  bool has_token_ = true;
  std::map<int, pid_t> sessions_;
};

TEST_F(SessionsTest, ARunThatEndsWellOnAllMachinesEndsWell) {
  start(0, 2, "echo \"$@\" > told\nexit 0\n");
  start(1, 2, "echo \"$@\" > told\nexit 0\n");
  for (const int place : {0, 1}) {
    EXPECT_EQ(end(place), 0);
    EXPECT_EQ(read(place, "exit_code"), "0\n");
    EXPECT_EQ(read(place, "told"), "0\n");
  }
  EXPECT_EQ(read(0, "supervision"), "ok\n");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / state(0) / "ended")) << "nothing was ended";
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

TEST_F(SessionsTest, WhereAnotherProgramHasThePortTheRunIsNotSupervised) {
  const Descriptor other = listen_on(port_);
  start(0, 2, "sleep 100\n");
  const std::string why =
      "cannot listen on port " + std::to_string(port_) + ": Address already in use\n";
  EXPECT_TRUE(comes([&] { return read(0, "supervision") == why; })) << read(0, "supervision");
  EXPECT_TRUE(comes([&] {
    return read(0, "log") ==
           "dtool: the run is not supervised, and a failure may not end it: " + why;
  })) << read(0, "log");
}

}  // namespace
}  // namespace dtool::host
