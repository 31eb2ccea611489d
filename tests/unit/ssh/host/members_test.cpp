// SPDX-License-Identifier: MIT
// What belongs to a run, on hosts that are written down.
#include "ssh/host/members.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include "ssh/host/child.h"
#include "tests/unit/own_program.h"

namespace dtool::host {
namespace {

/// A host whose processes are added one by one.
struct Host {
  Host() { add(::getpid(), 1, ::getpid()); }

  Process& add(pid_t pid, pid_t parent, pid_t session, const std::string& run_id = {}) {
    Process process;
    process.pid = pid;
    process.parent = parent;
    process.session = session;
    process.state = 'S';
    process.threads = 1;
    process.start = 100;
    RunMark mark{RunMark::Look::seen};
    if (!run_id.empty()) mark.run_id = run_id;
    sight.users[pid] = ::geteuid();
    sight.marks[pid] = mark;
    return sight.processes.emplace_back(process);
  }

  Sight sight;
};

std::vector<pid_t> pids(const Members& members) {
  std::vector<pid_t> found;
  for (const Member& each : members.living) found.push_back(each.pid);
  return found;
}

RunTraces run_of(const std::string& id) {
  return {id, {}, {}, {}};
}

const pid_t kOne = ::getpid() + 1;
const pid_t kTwo = ::getpid() + 2;

TEST(Members, BearTheRunsId) {
  Host host;
  host.add(kTwo, 0, kTwo, "x_1");
  host.add(kOne, 0, kOne, "x_12");
  MemberFinder finder(run_of("x_1"));
  EXPECT_EQ(pids(finder.look(host.sight)), std::vector<pid_t>{kTwo});
}

TEST(Members, AreChildrenAndThoseInTheSessionOfAMember) {
  for (const bool is_child : {true, false}) {
    Host host;
    host.add(kTwo, 0, kTwo, "x_1");
    host.add(kOne, is_child ? kTwo : 0, is_child ? kOne : kTwo);
    MemberFinder finder(run_of("x_1"));
    EXPECT_EQ(pids(finder.look(host.sight)).size(), 2U) << is_child;
  }
}

TEST(Members, AreNotThoseThatBearAnotherRunsId) {
  Host host;
  host.add(kTwo, 0, kTwo, "x_1");
  host.add(kOne, kTwo, kTwo, "y_1");
  MemberFinder finder(run_of("x_1"));
  EXPECT_EQ(pids(finder.look(host.sight)), std::vector<pid_t>{kTwo});
}

TEST(Members, AreInALeadersSessionOnlyWhereTheyAreYounger) {
  Host host;
  host.add(kOne, 0, kTwo);
  MemberFinder younger({"x_1", {{kTwo, 100}}, {}, {}});
  EXPECT_EQ(younger.look(host.sight).living.size(), 1U);
  MemberFinder older({"x_1", {{kTwo, 101}}, {}, {}});
  EXPECT_EQ(older.look(host.sight).living.size(), 0U);
}

TEST(Members, StayOnesWhereTheyForgetWhoTheyAre) {
  Host host;
  host.add(kOne, 0, kOne, "x_1");
  MemberFinder finder(run_of("x_1"));
  EXPECT_EQ(finder.look(host.sight).living.size(), 1U);
  host.sight.marks[kOne] = RunMark{RunMark::Look::seen};
  EXPECT_EQ(finder.look(host.sight).living.size(), 1U);
  host.sight.processes.back().start = 200;  // the pid was given out again
  EXPECT_EQ(finder.look(host.sight).living.size(), 0U);
  EXPECT_EQ(finder.count_seen(), 1U);
}

TEST(Members, AreAllBelowOneInWhateverOrderTheyStand) {
  Host host;
  const pid_t first = ::getpid() + 10;
  for (int i = 1; i < 8; ++i) host.add(first - i, first - i + 1, first - i);
  host.add(first, 0, first, "x_1");
  EXPECT_EQ(pids(MemberFinder(run_of("x_1")).look(host.sight)).size(), 8U);
}

TEST(Members, AreNotThoseBeside) {
  Host host;
  host.add(kTwo, 0, kTwo, "x_1");
  host.add(kOne, 0, kOne);
  EXPECT_EQ(pids(MemberFinder(run_of("x_1")).look(host.sight)), std::vector<pid_t>{kTwo});
}

TEST(Members, AreSeedsWhateverTheyBear) {
  Host host;
  host.add(kOne, 0, kOne, "y_1");
  host.add(kTwo, 0, kTwo);
  MemberFinder finder({"x_1", {}, {kOne, kTwo}, {}});
  EXPECT_EQ(pids(finder.look(host.sight)), (std::vector<pid_t>{kOne, kTwo}));
}

TEST(Members, OfNoRunAreThoseOfItsSessionsAlone) {
  Host host;
  host.add(kOne, 0, kOne, "x_1");
  host.add(kTwo, 0, kTwo, "y_1");
  MemberFinder finder({"", {{kTwo, 100}}, {}, {}});
  EXPECT_EQ(pids(finder.look(host.sight)), std::vector<pid_t>{kTwo});
}

TEST(Members, AreToldWithWhatTheyUse) {
  Host host;
  Process& process = host.add(kOne, 0, kOne, "x_1");
  process.cpu_ticks = 7;
  process.resident_pages = 9;
  const Members members = MemberFinder(run_of("x_1")).look(host.sight);
  ASSERT_EQ(members.living.size(), 1U);
  const Member& found = members.living.front();
  EXPECT_EQ(found.start, 100U);
  EXPECT_EQ(found.user, ::geteuid());
  EXPECT_EQ(found.cpu_ticks, 7U);
  EXPECT_EQ(found.resident_pages, 9U);
  EXPECT_FALSE(members.ended_meanwhile);
}

TEST(Members, OfNoKnownUserAreLookedUp) {
  Host host;
  const pid_t none = 2'000'000'000;  // more than a pid can be
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  for (const pid_t each : {child, none}) {
    host.add(each, 0, each);
    host.sight.users.erase(each);
  }
  MemberFinder finder({"x_1", {}, {child, none}, {}});
  EXPECT_EQ(pids(finder.look(host.sight)), std::vector<pid_t>{child});
  send_to({.pid = child, .start = find_process(child).value().start}, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(Members, ThatNeverBoreTheIdLeaveNoSignOfTheirEnd) {
  Host host;
  MemberFinder finder({"x_1", {}, {kOne}, {}});
  EXPECT_FALSE(finder.look(host.sight).ended_meanwhile);
}

TEST(Members, AreNotTheDead) {
  Host host;
  host.add(kOne, 0, kOne, "x_1").state = 'Z';
  MemberFinder finder(run_of("x_1"));
  EXPECT_TRUE(finder.look(host.sight).living.empty());
}

TEST(Members, ThatEndBeforeTheyAreMetLeaveASign) {
  Host host;
  host.add(kOne, 0, kOne, "y_1");
  host.sight.marks[kTwo] = RunMark{RunMark::Look::seen, "x_1"};
  host.sight.users[kTwo] = ::geteuid();
  EXPECT_TRUE(MemberFinder(run_of("x_1")).look(host.sight).ended_meanwhile);
  EXPECT_FALSE(MemberFinder(run_of("y_1")).look(host.sight).ended_meanwhile);
}

TEST(Members, ThatThisDescendsFromAreNamedApart) {
  Host host;
  host.sight.processes.front().parent = kTwo;
  host.add(kTwo, 0, kTwo, "x_1");
  MemberFinder finder(run_of("x_1"));
  const Members members = finder.look(host.sight);
  EXPECT_TRUE(members.living.empty());
  EXPECT_EQ(members.callers, std::vector<pid_t>{kTwo});
}

TEST(Members, ThatThisDescendsFromAreNamedFromTheNearestOn) {
  Host host;
  const pid_t between = kTwo + 1;
  host.sight.processes.front().parent = kTwo;
  host.add(kTwo, between, kTwo, "x_1");
  host.add(between, kOne, between);
  host.sight.marks[between].run_id = "y_1";
  host.add(kOne, 0, kOne, "x_1");
  EXPECT_EQ(MemberFinder(run_of("x_1")).look(host.sight).callers, std::vector<pid_t>{kTwo})
      << "another run's process is between";
  host.sight.marks[between].run_id.reset();
  EXPECT_EQ(MemberFinder(run_of("x_1")).look(host.sight).callers,
            (std::vector<pid_t>{kTwo, between, kOne}));
}

TEST(Members, ThatAreSparedStayWithoutTheOthersOfTheirSession) {
  Host host;
  host.add(kOne, 0, kOne, "x_1");
  host.add(kTwo, 0, kOne, "x_1");
  MemberFinder finder({"x_1", {}, {}, {kOne}});
  EXPECT_EQ(pids(finder.look(host.sight)), std::vector<pid_t>{kTwo});
}

TEST(LookAround, TellsOfEachThatBearsAnId) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execlp("env", "env", "DTOOL_RUN_ID=around_1", "sleep", "60", nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 1000 && command_of(pid, 60) != "sleep 60"; ++i) ::usleep(10'000);
  std::vector<pid_t> told;
  const Sight sight = look_around([&](pid_t each, const std::string& run_id, uid_t user) {
    if (run_id != "around_1") return;
    EXPECT_EQ(user, ::geteuid());
    told.push_back(each);
  });
  EXPECT_EQ(std::ranges::count(told, pid), 1);
  EXPECT_EQ(sight.marks.at(pid).run_id, "around_1");
  EXPECT_EQ(sight.users.at(pid), ::geteuid());
  EXPECT_EQ(std::ranges::count(sight.processes, pid, &Process::pid), 1);
  EXPECT_EQ(look_around().marks.at(pid).run_id, "around_1") << "with nobody to tell";
  send_to({.pid = pid, .start = find_process(pid).value().start}, SIGKILL);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
}

TEST(Members, ThatThisDescendsFromAreNamedUpToProcess1) {
  Host host;
  host.sight.processes.front().parent = kOne;
  host.add(kOne, 1, kOne, "x_1");
  host.add(1, 0, 1, "x_1");
  EXPECT_EQ(MemberFinder(run_of("x_1")).look(host.sight).callers, std::vector<pid_t>{kOne});
}

TEST(Members, ThatAreSparedStayWithTheirChildren) {
  Host host;
  host.add(kTwo, 0, kTwo, "x_1");
  host.add(kOne, kTwo, kOne, "x_1");
  MemberFinder finder({"x_1", {}, {}, {kTwo}});
  EXPECT_TRUE(finder.look(host.sight).living.empty());
}

TEST(Members, AreSentNoSignalOnceTheirPidIsAnothers) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  const std::uint64_t start = find_process(pid).value().start;
  send_to({.pid = pid, .start = start + 1}, SIGKILL);
  send_to({.pid = pid, .start = start}, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

const tests::OwnProgram kStrike("strike_from_within_its_run", [] {
  MemberFinder finder(run_of(std::getenv("DTOOL_RUN_ID")));
  finder.strike();
  return 0;
});

TEST(Members, AStrikeFromWithinTheRunEndsItsOthersButNotThoseAboveIt) {
  const std::string run_id = "strike_" + std::to_string(::getpid());
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  // The lower bash is started with the run's id, and so bears it. So does its sleep.
  const std::string above =
      "sleep 60 & sleeper=$!; \"$0\" strike_from_within_its_run >/dev/null || exit 1; "
      "wait $sleeper; echo \"$?\"";
  const ChildResult struck = run_program(
      {"env", "DTOOL_RUN_ID=" + run_id, "bash", "-c", above, self}, std::chrono::seconds(50));
  EXPECT_EQ(struck.exit_code, 0);
  EXPECT_EQ(struck.out, "137\n");
}

TEST(Members, AStrikeGoesByAProcessWhoseRunIdIsEmpty) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execlp("env", "env", "DTOOL_RUN_ID=", "sleep", "60", nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 1000 && command_of(pid, 60) != "sleep 60"; ++i) ::usleep(10'000);
  EXPECT_EQ(read_run_mark(pid).run_id, std::nullopt) << "it is of no run";
  for (const std::string& run : {"strike_" + std::to_string(::getpid()), std::string()})
    MemberFinder(run_of(run)).strike();
  send_to({.pid = pid, .start = find_process(pid).value().start}, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(Members, OfAnotherUserNeedMoreThanTheId) {
  Host host;
  host.add(kOne, 0, kOne, "x_1");
  host.sight.users[kOne] = ::geteuid() + 1;
  MemberFinder finder(run_of("x_1"));
  EXPECT_TRUE(finder.look(host.sight).living.empty());
}

}  // namespace
}  // namespace dtool::host
