// SPDX-License-Identifier: MIT
// Which processes a kill names because they may be the run's, and which it does not.
#include "ssh/host/kill.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <list>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ssh/host/child.h"
#include "ssh/host/process_table.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::host {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

/// While it lives, this process acts as that user.
class ActingAs {
 public:
  explicit ActingAs(uid_t user) : before_(::geteuid()) { EXPECT_EQ(::seteuid(user), 0); }
  ~ActingAs() {
    EXPECT_EQ(::seteuid(before_), 0);
    ::prctl(PR_SET_DUMPABLE, 1);
  }
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;

 private:
  uid_t before_;
};

/// Other processes of this user begin and end beside the test, so only those of its folder count.
class UnseenTest : public testing::Test {
 protected:
  ~UnseenTest() override {
    for (const pid_t pid : further_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  /// A process of that name and user that has done this and waits to be ended.
  pid_t begin(
      const std::string& name, uid_t user, const std::function<void()>& first = [] {}) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_NAME, name.c_str());
      first();
      if (user != ::getuid() && ::setresuid(user, user, user) != 0) ::_exit(1);
      if (::write(ends[1], "", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    further_.push_back(pid);
    ::close(ends[1]);
    char done = 0;
    EXPECT_EQ(::read(ends[0], &done, 1), 1);
    ::close(ends[0]);
    return pid;
  }
  /// A server of that name and user, and a process of another user that it has begun.
  std::pair<pid_t, pid_t> serve(const std::string& name, uid_t user, uid_t childs_user) {
    const pid_t server = begin(name, user, [&] {
      const std::string child = std::to_string(begin("child", childs_user));
      scratch_.write("begun", child);
    });
    const pid_t child = std::stoi(scratch_.read("begun"));
    further_.push_back(child);
    return {server, child};
  }
  /// How many lines tell of such a server.
  std::size_t count_told(const std::string& name, uid_t user, uid_t childs_user) {
    return told(" (pid " + std::to_string(serve(name, user, childs_user).first) + ") has ", {})
        .size();
  }

  /// Starts a program in that folder, and returns its pid once its command line begins so.
  pid_t start(const std::string& program, const fs::path& folder,
              const std::string& command = "sleep") {
    const fs::path told = scratch_.path() / ("pid" + std::to_string(children_.size()));
    const std::string script = "unset DTOOL_RUN_ID; echo $$ >" + told.string() + ".new; mv " +
                               told.string() + ".new " + told.string() + "; exec " + program;
    children_.emplace_back(std::vector<std::string>{"/bin/sh", "-c", script}, folder.native());
    return running(told, command);
  }
  /// The process whose pid that file has, once its command line begins so.
  static pid_t running(const fs::path& file, const std::string& command) {
    const auto wait = [](auto is) {
      for (int i = 0; i < 1000 && !is(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    };
    wait([&] { return fs::exists(file); });
    pid_t pid = 0;
    std::ifstream(file) >> pid;
    wait([&] { return command_of(pid, 200).starts_with(command); });
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

TEST_F(UnseenTest, WhatBeganInTheSameTickAsTheRunMayBeTheRuns) {
  const fs::path run = folder("run");
  const pid_t inside = start("sleep 31", run);
  const std::uint64_t began = find_process(inside).value().start;
  EXPECT_EQ(told(std::to_string(inside), {run}, "x_1", began).size(), 1U);
  EXPECT_TRUE(told(std::to_string(inside), {run}, "x_1", began + 1).empty());
}

TEST_F(UnseenTest, CountsThemAndNamesThree) {
  const fs::path run = folder("run");
  std::string named;
  for (int i = 0; i < 4; ++i) {
    const std::string command = "sleep 3" + std::to_string(i);
    const std::string pid = std::to_string(start(command, run));
    if (i < 3) named += (i == 0 ? ": " : ", ") + pid + " " + command;
    if (i < 2) continue;
    const auto lines = told("in the run's folder", {run});
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_TRUE(lines[0].starts_with(std::to_string(i + 1) + " processes without the run's id"))
        << lines[0];
    EXPECT_TRUE(lines[0].ends_with(named + (i == 3 ? ", …" : ""))) << lines[0];
  }
}

TEST_F(UnseenTest, ALongCommandIsCutAt60Characters) {
  const fs::path run = folder("run");
  const std::string zeros(100, '0');
  const std::string inside = std::to_string(start("sleep 31." + zeros, run));
  const auto lines = told(inside, {run});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].ends_with(" sleep 31." + zeros.substr(0, 51))) << lines[0];
}

TEST_F(UnseenTest, LeavesOutItselfAndWhatBelongsToAnyRun) {
  const fs::path run = folder("run");
  const fs::path before = fs::current_path();
  fs::current_path(run);
  EXPECT_TRUE(told("in the run's folder", {run}, "x_1", 1).empty());
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
  const fs::path run = folder("run");
  const std::string own = std::to_string(start("env DTOOL_RUN_ID=x_1 sleep 31", run));
  EXPECT_TRUE(told(own, {run}).empty()) << "it is no other user's";
}

TEST_F(UnseenTest, AnotherUsersProcessInTheRunsFolderIsTheirs) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be someone else";
  const fs::path run = folder("run");
  const std::string theirs =
      std::to_string(start("setpriv --reuid 65534 --clear-groups sleep 31", run));
  EXPECT_TRUE(told(theirs, {run}).empty());
}

TEST_F(UnseenTest, NamesItsUsersProcessesThatHideTheirEnvironment) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be someone else";
  // A process that was root's hides from the user that it has become.
  const std::string hider = "process " + std::to_string(begin("hider", kNobody)) + " (";
  const std::string of_another = "process " + std::to_string(begin("hider", kNobody - 1)) + " (";
  std::vector<std::string> of_those_that_keep_keys;
  for (const char* name :
       {"sshd", "sshd-session", "(sd-pam)", "systemd", "ssh-agent", "gpg-agent", "su", "sudo"})
    of_those_that_keep_keys.push_back("process " + std::to_string(begin(name, kNobody)) + " (");
  const ActingAs nobody(kNobody);
  std::string lines = "\n";
  for (const std::string& each : told("process ", {})) lines += each + "\n";
  EXPECT_NE(lines.find("\n" + hider), lines.npos) << lines;
  EXPECT_NE(lines.find(") began after the run and hides its environment\n"), lines.npos) << lines;
  EXPECT_EQ(lines.find("\n" + of_another), lines.npos) << lines;
  for (const std::string& each : of_those_that_keep_keys)
    EXPECT_EQ(lines.find("\n" + each), lines.npos) << lines;
}

TEST_F(UnseenTest, KnowsEachKindOfServer) {
  const uid_t own = ::geteuid();
  std::vector<std::string> expected;
  for (const std::string name : {"tmux: server", "screen", "systemd", "conmon"}) {
    const auto [server, child] = serve(name, own, own);
    expected.push_back(name.substr(0, name.find(':')) + " (pid " + std::to_string(server) +
                       ") has 1 process that began after the run: " + std::to_string(child) + " ");
  }
  std::vector<std::string> none;
  for (const char* name : {"tmux", "bash", "containerd"})
    none.push_back(" (pid " + std::to_string(serve(name, own, own).first) + ") has ");
  const auto lines = told(") has ", {});
  for (const std::string& each : expected)
    EXPECT_EQ(std::ranges::count_if(lines, [&](auto& line) { return line.starts_with(each); }), 1)
        << each;
  for (const std::string& each : none)
    EXPECT_TRUE(std::ranges::none_of(lines, [&](auto& line) {
      return line.find(each) != line.npos;
    })) << each;
}

TEST_F(UnseenTest, AServersProcessesAreItsUsersExceptInContainers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be someone else";
  EXPECT_EQ(count_told("screen", 0, kNobody), 0U);
  EXPECT_EQ(count_told("screen", kNobody, kNobody), 0U);
  EXPECT_EQ(count_told("conmon", kNobody, kNobody), 0U);
  EXPECT_EQ(count_told("conmon", 0, kNobody), 1U);
}

TEST_F(UnseenTest, DockersContainersCountForWhoeverMaySpeakToDocker) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be someone else";
  const std::string socket = scratch_.write("socket");
  {
    const tests::TemporaryVariable host("DOCKER_HOST", "unix://" + socket);
    EXPECT_EQ(count_told("containerd-shim", kNobody, kNobody - 1), 0U) << "it only has the name";
    EXPECT_EQ(count_told("bash", 0, 0), 0U) << "it is no container";
    const std::string roots = std::to_string(serve("containerd-shim", 0, kNobody - 1).first);
    EXPECT_EQ(told("containerd-shim (pid " + roots, {}).size(), 1U);
    const ActingAs nobody(kNobody);
    EXPECT_EQ(told("containerd-shim (pid " + roots, {}).size(), 1U);
  }
  const tests::TemporaryVariable missing("DOCKER_HOST", "unix://" + socket + "2");
  EXPECT_EQ(count_told("containerd-shim", 0, kNobody - 1), 0U);
}

TEST_F(UnseenTest, LeavesOutTheCallersOwnTerminal) {
  const uid_t own = ::geteuid();
  const pid_t screen = begin("screen", own, [&] {
    const pid_t other = begin("other", own);
    std::string below;
    const pid_t caller = begin("caller", own, [&] {
      below = std::to_string(begin("below", own));
      std::string lines;
      for (const std::string& each : told("screen (pid " + std::to_string(::getppid()), {}))
        lines += each + "\n";
      scratch_.write("told", lines);
      scratch_.write("below", below);
    });
    scratch_.write("pids", std::to_string(other) + " " + std::to_string(caller));
  });
  std::istringstream pids(scratch_.read("pids") + " " + scratch_.read("below"));
  std::array<pid_t, 3> begun{};
  for (pid_t& each : begun) pids >> each;
  further_.insert(further_.end(), begun.begin(), begun.end());
  const std::string told = scratch_.read("told");
  EXPECT_TRUE(told.starts_with(
      "screen (pid " + std::to_string(screen) +
      ") has 1 process that began after the run: " + std::to_string(begun[0]) + " "))
      << told;
}

TEST_F(UnseenTest, NamesJobsOfAtThatHaveNotBegun) {
  const auto program = [this](const std::string& name, const std::string& text) {
    const fs::path file = scratch_.write("bin/" + name, "#!/bin/sh\n" + text);
    fs::permissions(file, fs::perms::owner_all);
  };
  program("atq", "echo '7\tMon Nov 30 12:00:00 2026 a me'; echo '8\tTue'; echo '9\tWed'\n");
  program("at",
          "[ $1 = -c ] || exit 1\n"
          "case $2 in 7) id=x_1;; 8) id=x_12;; 9) id=;; *) id=many;; esac\n"
          "echo \"umask 22\nDTOOL_RUN_ID=$id; export DTOOL_RUN_ID\"\n");
  const tests::TemporaryVariable path("PATH",
                                      (scratch_.path() / "bin").native() + ":/usr/bin:/bin");
  EXPECT_EQ(told("at has job", {}),
            std::vector<std::string>{"at has job 7 of the run, which has not begun (atrm 7)"});
  EXPECT_TRUE(told("at has job", {}, "").empty());
  program("atq", "i=100; while [ $i -lt 152 ]; do echo \"$i\tMon\"; i=$((i + 1)); done\n");
  const auto many = told("at has job", {}, "many");
  ASSERT_EQ(many.size(), 50U) << "no more are asked for";
  EXPECT_EQ(many.front(), "at has job 100 of the run, which has not begun (atrm 100)");
}

/// Whether a process whose parent has ended becomes process 1's here.
bool has_plain_init() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return false;
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t own = ::getpid();
    if (::fork() != 0) ::_exit(0);
    while (::getppid() == own) pause(std::chrono::milliseconds(1));
    const pid_t parent = ::getppid();
    ::_exit(::write(ends[1], &parent, sizeof parent) == sizeof parent ? 0 : 1);
  }
  ::waitpid(child, nullptr, 0);
  pid_t parent = 0;
  const bool is_read = ::read(ends[0], &parent, sizeof parent) == sizeof parent;
  for (const int each : ends) ::close(each);
  return is_read && parent == 1;
}

TEST_F(UnseenTest, NamesAProcessThatForksAndEndsAllTheTime) {
  if (!has_plain_init()) GTEST_SKIP() << "something else than process 1 takes in orphans";
  scratch_.write("go");
  scratch_.write("hop", "sleep 0.03; [ -e go ] && sh hop 2>/dev/null &\n");
  Child first({"sh", "hop"}, scratch_.path());
  std::vector<std::string> lines;
  for (int look = 0; look < 30 && lines.empty(); ++look) lines = told(" sh hop)", {});
  fs::remove(scratch_.path() / "go");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with(
      "processes begin and end all the time, each the child of one that is gone ("))
      << lines[0];
}

TEST_F(UnseenTest, AProcessThatLostItsParentOnceDoesNotHop) {
  const Child parent({"sh", "-c", "sleep 0.456 &"}, scratch_.path());
  EXPECT_TRUE(told("sleep 0.456", {}).empty());
}

TEST_F(UnseenTest, ProcessesThatAreWaitedForDoNotHop) {
  scratch_.write("go");
  scratch_.write("wait", "while [ -e go ]; do sleep 0.0123; done\n");
  const Child waiting({"sh", "wait"}, scratch_.path());
  EXPECT_TRUE(told("sleep 0.0123", {}).empty());
  fs::remove(scratch_.path() / "go");
}

/// What the tries to meet a hopper find, one after another, and how they rest between them.
struct Tries {
  std::vector<std::optional<pid_t>> met;
  std::vector<int> rests = {};

  std::optional<pid_t> follow() {
    std::size_t at = 0;
    const auto found =
        follow_hopper([&] { return met.at(at++); },
                      [this](auto time) { rests.push_back(static_cast<int>(time.count())); });
    EXPECT_EQ(at, met.size());
    return found;
  }
};

TEST(FollowHopper, NamesTheLastOfFour) {
  Tries tries{{2, 3, 4, 5}};
  EXPECT_EQ(tries.follow(), 5);
  EXPECT_EQ(tries.rests, (std::vector<int>{60, 60, 60}));
}

TEST(FollowHopper, TriesThriceToMeetOne) {
  Tries tries{{{}, {}, 2, {}, 3, 4, {}, {}, 5}};
  EXPECT_EQ(tries.follow(), 5);
  EXPECT_EQ(tries.rests, (std::vector<int>{8, 8, 60, 8, 60, 60, 8, 8}));
}

TEST(FollowHopper, IsOverWhereALookMeetsNone) {
  EXPECT_EQ((Tries{{{}, {}, {}}}.follow()), std::nullopt);
  EXPECT_EQ((Tries{{2, 3, 4, {}, {}, {}}}.follow()), std::nullopt);
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
                                scratch_.path(), server);
    further_.push_back(running(file, "sleep"));
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
