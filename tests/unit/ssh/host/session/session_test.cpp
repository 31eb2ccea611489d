// SPDX-License-Identifier: MIT
// A session of one script: what it records, what a terminal shows, and what it survives.
#include "ssh/host/session/session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/job.h"
#include "tests/unit/refused_calls.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    std::filesystem::create_symlink("the_log", folder_.path() / "log");
    folder_.write("said", "");
  }
  ~SessionTest() override {
    if (session_ <= 0) return;
    ::kill(session_, SIGKILL);
    wait_for_child(session_);
  }

  /// In the folder, with this terminal or file as its output.
  void start(const std::string& script, int output = -1) {
    folder_.write("script", script);
    session_ = ::fork();
    if (session_ != 0) return;
    std::filesystem::current_path(folder_.path());
    const int said = ::open("said", O_WRONLY | O_APPEND);
    ::dup2(output == -1 ? said : output, STDOUT_FILENO);
    ::dup2(said, STDERR_FILENO);
    if (!has_processes_) tests::refuse_processes(EAGAIN);
    const int code = run_session("log");
    ::_exit(write_in_place("came_back", "") ? code : 99);
  }

  int end() {
    const auto code = wait_for_child(session_, 20s);
    if (code) session_ = -1;
    return code.value_or(-1);
  }

  bool comes(const std::function<bool()>& holds) const {
    for (int i = 0; i < 2000 && !holds(); ++i) host::pause(5ms);
    return holds();
  }
  bool is_there(const std::string& file) const {
    return std::filesystem::exists(folder_.path() / file);
  }

  const tests::TemporaryFolder folder_;
  bool has_processes_ = true;
  pid_t session_ = -1;
};

TEST_F(SessionTest, RecordsItsBeginAndTheScriptsEnd) {
  folder_.write("the_log", "");
  start(
      "echo \"$DTOOL_HOST\" > program; cat process > begun; readlink /proc/$PPID/fd/2 > errors\n"
      "echo out; echo err >&2; exit 7\n");
  const std::string pid = std::to_string(session_);
  EXPECT_EQ(end(), 7);
  EXPECT_EQ(folder_.read("program"), "/proc/" + pid + "/exe\n");
  EXPECT_TRUE(folder_.read("begun").starts_with(pid + " "));
  EXPECT_EQ(read_line(folder_.path() / "exit_code"), "7");
  EXPECT_EQ(folder_.read("the_log"), "out\nerr\n");
  EXPECT_EQ(folder_.read("errors"), (folder_.path() / "the_log").string() + "\n")
      << "what an assert says goes there, too";
  EXPECT_NE(folder_.read("log_times"), "");
  EXPECT_EQ(folder_.read("said"), "") << "it is no terminal";
}

TEST_F(SessionTest, SaysWhereTheLastLinesOfRanksAre) {
  std::filesystem::remove(folder_.path() / "log");
  folder_.write("merging.0", "");
  start("exit 0\n");
  EXPECT_EQ(end(), 0);
  EXPECT_NE(folder_.read("log").find("the ranks' last lines may be in "), std::string::npos);
}

TEST_F(SessionTest, WhoseSettingsAreNoneEndsWithTheFault) {
  folder_.write("supervise", "pace 1\n");
  start("echo > ran\n");
  EXPECT_EQ(end(), 1);
  const std::string fault =
      "the file supervise is not as dtool writes it: 'pace' is no name that dtool-host knows\n";
  EXPECT_EQ(folder_.read("fault"), fault);
  EXPECT_EQ(folder_.read("the_log"), "dtool: " + fault);
  EXPECT_EQ(read_line(folder_.path() / "exit_code"), "1");
  EXPECT_FALSE(is_there("ran"));
}

TEST_F(SessionTest, WithoutProcessesForItsViewerAndItsScriptSaysSoInTheLog) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
  const Descriptor master(ends[0]);
  const Descriptor terminal(ends[1]);
  has_processes_ = false;
  start("exit 0\n", terminal.get());
  EXPECT_EQ(end(), 1);
  const std::string why = ": Resource temporarily unavailable\n";
  EXPECT_EQ(folder_.read("the_log"),
            "dtool: the log is not shown" + why + "dtool: no process can be made" + why);
  EXPECT_EQ(read_line(folder_.path() / "exit_code"), "1");
}

TEST_F(SessionTest, SurvivesItsTerminalsSignals) {
  start("trap 'echo > heard' INT\necho > ready\nuntil [ -e go ]; do sleep 0.02; done; exit 3\n");
  ASSERT_TRUE(comes([&] { return is_there("ready"); }));
  for (const int each : {SIGINT, SIGHUP}) ::kill(session_, each);
  folder_.write("go", "");
  EXPECT_EQ(end(), 3);
  EXPECT_EQ(read_line(folder_.path() / "exit_code"), "3");
}

TEST_F(SessionTest, ShowsTheLogInItsTerminalAlsoAfterItWasCut) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
  const Descriptor master(ends[0]);
  Descriptor terminal(ends[1]);
  ::fcntl(master.get(), F_SETFL, O_NONBLOCK);
  std::string shown;
  const auto shows = [&](const std::string& text) {
    return comes([&] {
      std::array<char, 4096> piece{};
      for (ssize_t size = 0; (size = ::read(master.get(), piece.data(), piece.size())) > 0;)
        shown.append(piece.data(), static_cast<std::size_t>(size));
      return shown == text;
    });
  };
  const mode_t mask = ::umask(0);
  ::umask(mask);
  start(
      "until [ -e first ]; do sleep 0.02; done; echo first line\n"
      "until [ -e cut ]; do sleep 0.02; done; : > log\n"
      "until [ -e second ]; do sleep 0.02; done; echo 2nd\n"
      "until [ -e go ]; do sleep 0.02; done\n",
      terminal.get());
  terminal = Descriptor();
  struct stat found {};
  EXPECT_TRUE(comes([&] { return ::stat((folder_.path() / "the_log").c_str(), &found) == 0; }));
  EXPECT_EQ(found.st_mode & 07777U, 0666U & ~mask);
  folder_.write("first", "");
  EXPECT_TRUE(shows("first line\r\n")) << shown;
  folder_.write("cut", "");
  EXPECT_TRUE(comes([&] { return folder_.read("the_log").empty(); }));
  folder_.write("second", "");
  EXPECT_TRUE(shows("first line\r\n2nd\r\n")) << shown;
  std::vector<pid_t> viewers;
  for (const Process& each : read_processes()) {
    if (each.parent == session_ && each.name == find_process(session_)->name)
      viewers.push_back(each.pid);
  }
  EXPECT_EQ(viewers.size(), 1U);
  folder_.write("go", "");
  EXPECT_EQ(end(), 0);
  for (const pid_t each : viewers) EXPECT_EQ(::kill(each, 0), -1) << "the viewer stays";
  EXPECT_EQ(folder_.read("the_log"), "2nd\n");
}

}  // namespace
}  // namespace dtool::host
