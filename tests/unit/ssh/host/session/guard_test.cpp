// SPDX-License-Identifier: MIT
// A session's guard: what it tells machine 0, and what it does on its host once the session is
// gone.
#include "ssh/host/session/guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host/child.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/job.h"
#include "ssh/host/session/report_link.h"
#include "ssh/host/session/report_port.h"
#include "ssh/host/session/supervision.h"
#include "tests/unit/few_descriptors.h"
#include "tests/unit/own_program.h"
#include "tests/unit/refused_calls.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

const tests::OwnProgram kGuardProgram("guard", run_guard);

class GuardTest : public testing::Test {
 protected:
  GuardTest() {
    guard(0);
    std::filesystem::current_path(folder_.path());  // where a session runs, and so its guard
  }
  ~GuardTest() override {
    std::filesystem::current_path(outside_);
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    wait_for_child(process_);
  }

  void guard(int place, std::uint16_t port = 1) {
    Supervision settings{place, "h", 2, 0, 60s, "127.0.0.1", port};
    if (place == 0) settings.hosts = {"h", "i"};
    folder_.write("supervise", to_text(settings));
  }

  [[noreturn]] void become(const std::array<int, 2>& ends) noexcept {
    ::dup2(ends[0], STDIN_FILENO);
    for (const int each : ends) ::close(each);
    ::setenv("DTOOL_RUN_ID", run_id().c_str(), 1);
    ::_exit(run_guard());
  }

  /// Starts a guard whose session says this and is gone; before that the guard gets the signal, if
  /// there is one.
  pid_t begin_losing_session(const std::string& last_words, int signal = 0) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const pid_t guard = ::fork();
    if (guard == 0) become(ends);
    ::close(ends[0]);
    if (signal != 0) {  // once it waits for the session
      for (int i = 0; i < 2000 && find_process(guard)->state != 'S'; ++i) host::pause(5ms);
      ::kill(guard, signal);
    }
    EXPECT_EQ(::write(ends[1], last_words.data(), last_words.size()),
              static_cast<ssize_t>(last_words.size()));
    ::close(ends[1]);
    return guard;
  }
  void lose_session(const std::string& last_words, int signal = 0) {
    EXPECT_EQ(wait_for_child(begin_losing_session(last_words, signal), 20s), 0);
  }

  std::string run_id() const { return folder_.path().filename().string(); }

  /// A session that ends so, with a guard that is told to end meanwhile.
  [[noreturn]] void be_session(bool is_dismissed) noexcept {
    ::setenv("DTOOL_RUN_ID", run_id().c_str(), 1);
    Guard guard;
    const std::string words = "/proc/" + std::to_string(guard.pid()) + "/cmdline";
    for (int i = 0; i < 2000 && !tests::read_text(words).starts_with("dtool-host"); ++i)
      host::pause(5ms);
    for (const int each : {SIGINT, SIGHUP, SIGQUIT}) ::kill(guard.pid(), each);
    guard.tell({0, Standing::running});
    const bool is_alive = guard.is_alive();
    if (is_dismissed) guard.dismiss();
    ::_exit(is_alive ? 0 : 1);
  }

  /// A process of the run.
  void start_process() {
    const tests::TemporaryVariable id("DTOOL_RUN_ID", run_id());
    process_ = start_program({"sleep", "60"}, "", Input::nothing);
    for (int i = 0; i < 2000 && find_process(process_)->name != "sleep"; ++i) host::pause(5ms);
  }

  bool is_ended() {
    const bool has_ended = wait_for_child(process_, 0s).has_value();
    if (has_ended) process_ = -1;
    return has_ended;
  }

  const std::filesystem::path outside_ = std::filesystem::current_path();
  const tests::TemporaryFolder folder_;
  pid_t process_ = -1;
};

TEST_F(GuardTest, EndsWhatALostSessionLeft) {
  for (const int place : {0, 1}) {  // machine 1 has no token, so it tells nobody
    guard(place);
    for (const std::string& said : {std::string(), to_bytes({0, Standing::running})}) {
      start_process();
      lose_session(said);
      EXPECT_TRUE(is_ended());
      EXPECT_EQ(folder_.read("ended"), "ended=1\nforced=0\n");
      std::filesystem::remove(folder_.path() / "ended");
    }
  }
}

TEST_F(GuardTest, DoesNothingOnceTheSessionHasTakenItsLeave) {
  start_process();
  lose_session("farewell");
  EXPECT_FALSE(is_ended());
  EXPECT_EQ(folder_.read("ended"), "");
}

TEST_F(GuardTest, ASignalThatInterruptsItIsNoEndOfTheSession) {
  struct sigaction heard {};
  struct sigaction before {};
  heard.sa_handler = [](int) {};  // without SA_RESTART
  ::sigaction(SIGUSR1, &heard, &before);
  start_process();
  lose_session("farewell", SIGUSR1);
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_FALSE(is_ended());
}

TEST_F(GuardTest, OfAnotherMachineTellsMachineZeroTheFailureAndThenItsLeave) {
  const std::string token(32, 'a');
  folder_.write("token", token + "\n");
  Watch watch;
  ReportPort port(0, 2, token, watch);
  guard(1, port.port());
  start_process();
  const pid_t guard = begin_losing_session(to_bytes({3, Standing::running}));
  sigset_t none;
  ::sigemptyset(&none);
  std::vector<Report> told;
  std::optional<int> code;
  for (const Time end = time_since_boot() + 15s; !code && time_since_boot() < end;) {
    port.turn(time_since_boot());
    for (const int each : watch.wait(10ms, none)) {
      for (const PlacedReport& placed : port.take(each, time_since_boot())) {
        EXPECT_EQ(placed.place, 1);
        if (told.empty() || placed.report != told.back()) told.push_back(placed.report);
      }
    }
    code = wait_for_child(guard, 0s);
  }
  if (!code) ::kill(guard, SIGKILL);
  EXPECT_EQ(code, 0);
  const std::string text = "the session on machine 1 is gone: it was killed";
  EXPECT_EQ(told, (std::vector<Report>{{3, Standing::failed, 137, text},
                                       {3, Standing::gone, 137, text}}));
  EXPECT_TRUE(is_ended());
}

TEST_F(GuardTest, LeavesItToAKillThatHasBegunForAsLongAsThatMayTake) {
  folder_.write("killed", "1\n");
  start_process();
  const Time began = time_since_boot();
  lose_session("");
  EXPECT_GE(time_since_boot() - began, 1s);
  EXPECT_TRUE(is_ended());
}

TEST_F(GuardTest, HearsNothingButItsSessionAndSaysNothing) {
  sigset_t usual;
  sigset_t blocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &usual);
  Guard guard;
  ::sigprocmask(SIG_SETMASK, &usual, nullptr);
  const std::string process = "/proc/" + std::to_string(guard.pid());
  for (int i = 0; i < 2000 && !tests::read_text(process + "/cmdline").starts_with("dtool-host");
       ++i)
    host::pause(5ms);
  EXPECT_TRUE(std::filesystem::read_symlink(process + "/fd/0").string().starts_with("pipe:"));
  for (const char* each : {"/fd/1", "/fd/2"})
    EXPECT_EQ(std::filesystem::read_symlink(process + each), "/dev/null");
  EXPECT_NE(tests::read_text(process + "/status").find("SigBlk:\t0000000000000000\n"),
            std::string::npos);
  guard.dismiss();
}

TEST_F(GuardTest, OfMachineZeroDoesNothingOnceTheEndIsRecorded) {
  folder_.write("exit_code", "0\n");
  start_process();
  lose_session("");
  EXPECT_FALSE(is_ended());
  guard(1);
  lose_session("");
  EXPECT_TRUE(is_ended());
}

TEST_F(GuardTest, ActsForASessionThatEndsWithoutALeaveAndOutlivesItsTerminal) {
  for (const bool is_dismissed : {true, false}) {
    start_process();
    const pid_t session = ::fork();
    if (session == 0) be_session(is_dismissed);
    EXPECT_EQ(wait_for_child(session, 20s), 0);
    for (int i = 0; i < 2000 && !is_dismissed && folder_.read("ended").empty(); ++i)
      host::pause(5ms);
    EXPECT_EQ(folder_.read("ended"), is_dismissed ? "" : "ended=1\nforced=0\n");
    EXPECT_EQ(is_ended(), !is_dismissed);
    if (!is_dismissed) continue;
    ::kill(process_, SIGKILL);
    wait_for_child(process_);
  }
}

TEST_F(GuardTest, ThatWasKilledIsKnownToBeGone) {
  Guard guard;
  const pid_t pid = guard.pid();
  ASSERT_GT(pid, 0);
  EXPECT_TRUE(guard.is_alive());
  ::kill(pid, SIGKILL);
  for (int i = 0; i < 2000 && guard.is_alive(); ++i) host::pause(5ms);
  EXPECT_FALSE(guard.is_alive());
  EXPECT_EQ(guard.pid(), -1);
  EXPECT_EQ(::kill(pid, 0), -1);
  guard.dismiss();  // writes to nobody
}

/// Whether a session that can have no guard goes on, and loses no other child to that.
bool goes_on_without(pid_t other_child) {
  ::signal(SIGPIPE, SIG_IGN);  // as dtool-host does
  Guard guard;
  guard.tell({0, Standing::running});
  const bool is_there = guard.is_alive() || guard.pid() != -1;
  guard.dismiss();
  return !is_there && wait_for_child(other_child) == 3;
}

TEST(NoGuard, IsHadWithoutDescriptorsOrProcessesAndTheSessionGoesOn) {
  for (const bool has_descriptors : {false, true}) {
    EXPECT_EXIT(
        {
          const pid_t child = ::fork();
          if (child == 0) ::_exit(3);
          for (int i = 0; i < 2000 && !find_process(child)->is_dead(); ++i) host::pause(5ms);
          std::optional<tests::FewDescriptors> none;
          if (has_descriptors) {
            tests::refuse_processes(EAGAIN);
          } else {
            none.emplace(0);
          }
          ::_exit(goes_on_without(child) ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
  }
}

TEST(WordsOfGuard, AMachineThatRanHasFailedAndThenGoes) {
  const GuardsWords words = words_of_guard(2, {3, Standing::running, 0, "rank 4 is stopped", 4});
  const std::string text = "the session on machine 2 is gone: it was killed";
  EXPECT_EQ(words.failure, (Report{3, Standing::failed, 137, text, 4}));
  EXPECT_EQ(words.last, (Report{3, Standing::gone, 137, text, 4}));
}

TEST(WordsOfGuard, AFailureIsToldAsItWas) {
  const Report mistaken{1, Standing::mistaken, 2, "no such file", 4};
  const GuardsWords words = words_of_guard(2, mistaken);
  EXPECT_EQ(words.failure, mistaken);
  EXPECT_EQ(words.last, (Report{1, Standing::gone, 2, "no such file", 4}));
}

TEST(WordsOfGuard, AMachineThatHasStoppedOrEndedOnlyGoes) {
  EXPECT_EQ(words_of_guard(2, {1, Standing::ended}).failure, std::nullopt);
  EXPECT_EQ(words_of_guard(2, {1, Standing::ended}).last, (Report{1, Standing::gone}));
  const GuardsWords stopped = words_of_guard(2, {1, Standing::stopped, 143});
  EXPECT_EQ(stopped.failure, std::nullopt);
  EXPECT_EQ(stopped.last.code, 137);
}

}  // namespace
}  // namespace dtool::host
