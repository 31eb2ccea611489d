// SPDX-License-Identifier: MIT
// What belongs to a run, on hosts that are written down.
#include "ssh/host/members.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

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

TEST(Members, ThatAreSparedStayWithTheirChildren) {
  Host host;
  host.add(kTwo, 0, kTwo, "x_1");
  host.add(kOne, kTwo, kOne, "x_1");
  MemberFinder finder({"x_1", {}, {}, {kTwo}});
  EXPECT_TRUE(finder.look(host.sight).living.empty());
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
