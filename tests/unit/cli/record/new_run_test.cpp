// SPDX-License-Identifier: MIT
// A new run has a name of its own, and nothing is left of a run that does not start.
#include "cli/record/recorded.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

#include "tests/unit/fake_remote.h"

namespace dtool::cli {
namespace {

TEST(RunId, IsOneWhateverTheNameHolds) {
  for (const std::string name : {"mnist", "", ".", "..", "-rf", "../../etc", "a b", "ü", "it's",
                                 "$(id)", "a/b", "...x", "____", "\n", "%s", "*"}) {
    const std::string id = make_run_id(name);
    EXPECT_TRUE(killfiles::is_run_id(id)) << name << " gives " << id;
  }
  EXPECT_TRUE(killfiles::is_run_id(make_run_id(std::string(1000, 'x'))));
  EXPECT_TRUE(make_run_id("mnist").starts_with("mnist_2"));
}

TEST(RunId, IsAnotherEachTime) {
  EXPECT_NE(make_run_id("x"), make_run_id("x"));
}

TEST(RunId, LeavesRoomInASessionsName) {
  EXPECT_LT(make_run_id(std::string(1000, 'x')).size(), 70U);
}

TEST(DiscardRunFolders, AsksNobodyAfterAnInterrupt) {
  tests::FakeRemote remote("h1");
  remote.is_interrupted = true;
  discard_run_folders(remote, "x_1");
  EXPECT_TRUE(remote.rounds.empty());
}

TEST(DiscardRunFolders, ReachesHostsAnewAfterAnInterruptAndAsksNoQuestions) {
  tests::FakeRemote remote("h[1-2]");
  remote.is_interrupted = true;
  std::size_t asked = 0;
  ssh::ConnectOptions used;
  struct Counting : tests::FakeRemote {
    Counting(std::vector<ssh::Host> hosts, std::size_t& all)
        : FakeRemote(std::move(hosts)), asked(all) {}
    ~Counting() override { asked = rounds.empty() ? 0 : rounds.front().size(); }
    std::size_t& asked;
  };
  const Reach reach = [&](std::vector<ssh::Host> hosts, const ssh::ConnectOptions& connect) {
    used = connect;
    return std::make_unique<Counting>(std::move(hosts), asked);
  };
  ssh::ConnectOptions connect;
  connect.keep = std::chrono::seconds(60);
  connect.trace = "/trace";
  discard_run_folders(remote, "x_1", reach, connect);
  EXPECT_TRUE(remote.rounds.empty());
  EXPECT_EQ(asked, 2U);
  EXPECT_EQ(used.program, ssh::Program::libssh);
  EXPECT_EQ(used.keep.count(), 0);
  EXPECT_TRUE(used.trace.empty());
}

}  // namespace
}  // namespace dtool::cli
