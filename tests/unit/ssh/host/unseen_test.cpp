// SPDX-License-Identifier: MIT
// Which processes a kill names because they may be the run's, and which it does not.
#include "ssh/host/unseen.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "ssh/host/child.h"
#include "ssh/host/process_table.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

/// Other processes of this user begin and end beside the test, so only those of its folder count.
class UnseenTest : public testing::Test {
 protected:
  ~UnseenTest() override {
    for (const pid_t pid : further_) ::kill(pid, SIGKILL);
  }

  /// Starts a program in that folder, and returns its pid once it runs.
  pid_t start(const std::string& program, const fs::path& folder) {
    const fs::path told = scratch_.path() / ("pid" + std::to_string(children_.size()));
    const std::string script = "unset DTOOL_RUN_ID; echo $$ >" + told.string() + ".new; mv " +
                               told.string() + ".new " + told.string() + "; exec " + program;
    children_.emplace_back(std::vector<std::string>{"/bin/sh", "-c", script}, folder.native());
    return running(told);
  }
  /// The process whose pid that file has, once it is no shell any more.
  static pid_t running(const fs::path& file) {
    const auto wait = [](auto is) {
      for (int i = 0; i < 1000 && !is(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    };
    wait([&] { return fs::exists(file); });
    pid_t pid = 0;
    std::ifstream(file) >> pid;
    wait([&] {
      const std::string command = command_of(pid, 200);
      return command.starts_with("sleep") || command.find("screen -c") != command.npos;
    });
    return pid;
  }
  fs::path folder(const std::string& name) const {
    fs::create_directory(scratch_.path() / name);
    return fs::canonical(scratch_.path() / name);
  }
  /// What is told that has this text in it.
  std::vector<std::string> told(const std::string& part, const std::vector<std::string>& places,
                                const std::string& run_id = "x_1", std::uint64_t began = 0) const {
    std::vector<std::string> lines = find_unseen(run_id, began != 0 ? began : began_, places);
    std::erase_if(lines, [&](const std::string& each) { return each.find(part) == each.npos; });
    return lines;
  }
  static std::uint64_t now() {
    return static_cast<std::uint64_t>(seconds_since_boot() *
                                      static_cast<double>(ticks_per_second()));
  }

  tests::TemporaryFolder scratch_;
  std::uint64_t began_ = now() - 1;
  std::list<Child> children_;
  std::vector<pid_t> further_;
};

TEST_F(UnseenTest, NamesWhatIsInTheRunsFolderOrWritesIntoItsLog) {
  const fs::path run = folder("run");
  const std::string inside = std::to_string(start("sleep 31", run));
  const std::vector<std::string> expected = {
      "1 process without the run's id in the run's folder, or with the run's log as output: " +
      inside + " sleep 31"};
  EXPECT_EQ(told(inside, {run}), expected);
  EXPECT_EQ(told(inside, {"", scratch_.path()}), expected) << "below it";
  EXPECT_TRUE(told(inside, {run / "further", scratch_.path() / "ru"}).empty());
  EXPECT_TRUE(told(inside, {run}, "x_1", now() + 1000).empty()) << "it was there before";
  const fs::path log = run / "log";
  const std::string writing = std::to_string(start("sleep 32 >" + log.string(), scratch_.path()));
  EXPECT_EQ(told(writing, {log}).size(), 1U);
  const std::string complaining =
      std::to_string(start("sleep 33 2>" + log.string() + "2", scratch_.path()));
  EXPECT_EQ(told(complaining, {log.string() + "2"}).size(), 1U);
}

TEST_F(UnseenTest, CountsThemAndNamesThree) {
  const fs::path run = folder("run");
  std::vector<pid_t> pids;
  for (int i = 0; i < 4; ++i) pids.push_back(start("sleep 3" + std::to_string(i), run));
  const auto lines = told("in the run's folder", {run});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("4 processes without the run's id")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with(", …")) << lines[0];
  EXPECT_EQ(std::count(lines[0].begin(), lines[0].end(), ','), 4) << lines[0];
}

TEST_F(UnseenTest, LeavesOutItselfAndWhatBelongsToAnyRun) {
  const fs::path run = folder("run");
  const fs::path before = fs::current_path();
  fs::current_path(run);
  EXPECT_TRUE(told("in the run's folder", {run}).empty());
  fs::current_path(before);
  const std::string of_a_run = std::to_string(start("env DTOOL_RUN_ID=y_1 sleep 31", run));
  EXPECT_TRUE(told(of_a_run, {run}).empty());
}

TEST_F(UnseenTest, NamesOtherUsersProcessesWithTheRunsId) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be someone else";
  const std::string theirs = std::to_string(
      start("setpriv --reuid 65534 --clear-groups env DTOOL_RUN_ID=x_1 sleep 31", "/"));
  EXPECT_EQ(told(theirs, {}),
            (std::vector<std::string>{"1 process of other users with the run's id: " + theirs +
                                      " sleep 31"}));
  EXPECT_TRUE(told(theirs, {}, "y_1").empty());
  EXPECT_TRUE(told(theirs, {}, "").empty());
}

/// A program that is called as a server is: the kernel takes a process's name from its file.
TEST_F(UnseenTest, NamesWhatAServerOfBeforeHasBegun) {
  const fs::path server = scratch_.path() / "screen";
  fs::copy_file("/bin/sh", server);
  const auto serve = [&](const std::string& environment, const std::string& told_file) {
    const fs::path file = scratch_.path() / told_file;
    const pid_t serving = start("env " + environment + " " + server.string() +
                                    " -c 'env -u DTOOL_RUN_ID sleep 34 & echo $! >new; mv new " +
                                    file.string() + "; wait'",
                                scratch_.path());
    further_.push_back(running(file));
    return serving;
  };
  const pid_t of_the_user = serve("-u DTOOL_RUN_ID", "first");
  EXPECT_EQ(told("has 1 process that began after the run: " + std::to_string(further_[0]), {}),
            (std::vector<std::string>{"screen (pid " + std::to_string(of_the_user) +
                                      ") has 1 process that began after the run: " +
                                      std::to_string(further_[0]) + " sleep 34"}));
  const pid_t of_a_run = serve("DTOOL_RUN_ID=y_1", "second");
  EXPECT_TRUE(told("screen (pid " + std::to_string(of_a_run), {}).empty());
}

}  // namespace
}  // namespace dtool::host
