// SPDX-License-Identifier: MIT
// Machine 0 listens, the others connect, machine 0 ends; and what they say of it.
#include "cli/hosts/check_facts.h"

#include <gtest/gtest.h>

#include "ssh/wire/check.h"
#include "tests/unit/fake_remote.h"

namespace dtool::cli {
namespace {

using tests::answered;
using tests::FakeRemote;

TrialPlan some_plan() {
  TrialPlan plan;
  plan.address = "10.0.0.1";
  plan.port = 20123;
  plan.hosts = {0, 1, 2};
  return plan;
}

ListenerTrial try_it(FakeRemote& remote, const TrialPlan& plan = some_plan()) {
  Console console;
  return try_listener(console, remote, plan);
}

ssh::HostResult listening(std::int64_t pid, const std::string& fault = "") {
  return answered(host::to_frame(host::ListenReply{pid, fault, "eth1"}));
}

ssh::HostResult tried(bool is_reached, const std::string& fault, std::int64_t clock = 1) {
  return answered(host::to_frame(host::HostClock{clock}) +
                  host::to_frame(host::ReachReply{is_reached, fault, "eth0"}));
}

TEST(ListenerTrial, TheListenerIsEndedWhateverTheOthersSay) {
  FakeRemote remote("h[1-3]");
  remote.answers[0] = listening(4711);
  remote.answers[1] = tried(true, "");
  remote.answers[2] = tried(false, "no answer");
  const ListenerTrial trial = try_it(remote);
  ASSERT_EQ(remote.rounds.size(), 3u);
  EXPECT_EQ(remote.rounds[1].size(), 3u);
  EXPECT_EQ(remote.line_of(0, 2), "kill 4711");
  EXPECT_TRUE(trial.listened);
  EXPECT_EQ(trial.hosts[0].interface, "eth1");
  EXPECT_TRUE(trial.hosts[1].reached);
  EXPECT_EQ(trial.hosts[1].interface, "eth0");
  EXPECT_FALSE(trial.hosts[2].reached);
  EXPECT_EQ(trial.hosts[2].fault, "no answer");
}

TEST(ListenerTrial, WhoTriesHasTheListenersToken) {
  FakeRemote remote("h[1-3]");
  remote.answers[0] = listening(4711);
  try_it(remote);
  const auto listen = tests::request_of<host::ListenRequest>(remote.input_of(0, 0));
  const auto reach = tests::request_of<host::ReachRequest>(remote.input_of(2, 1));
  EXPECT_EQ(listen.token.text, reach.token.text);
  EXPECT_EQ(listen.machines, 3);
  EXPECT_EQ(reach.place, 2);
  EXPECT_EQ(reach.address, "10.0.0.1");
}

TEST(ListenerTrial, AFaultWithoutWordsIsOne) {
  FakeRemote remote("h[1-2]");
  remote.answers[0] = listening(4711);
  remote.answers[1] = tried(false, "");
  TrialPlan plan = some_plan();
  plan.hosts = {0, 1};
  EXPECT_NE(try_it(remote, plan).hosts[1].fault, "");
}

TEST(ListenerTrial, NobodyConnectsWhereNothingListens) {
  FakeRemote remote("h[1-3]");
  remote.answers[0] = listening(0, "Address already in use");
  const ListenerTrial trial = try_it(remote);
  EXPECT_EQ(remote.rounds.size(), 2u);
  EXPECT_EQ(tests::request_of<host::ReachRequest>(remote.input_of(1, 1)).address, "");
  EXPECT_EQ(trial.fault, "cannot listen on port 20123: Address already in use");
  EXPECT_EQ(trial.hosts[1].fault, "");
}

TEST(ListenerTrial, NoProcessButOneOfItsOwnIsEnded) {
  for (const std::int64_t pid : {-1, 0, 1}) {
    FakeRemote remote("h[1-3]");
    remote.answers[0] = listening(pid);
    EXPECT_FALSE(try_it(remote).listened);
    EXPECT_EQ(remote.rounds.size(), 2u) << pid;
  }
}

TEST(ListenerTrial, HostsThatAreGoneMeanwhileAreNamed) {
  FakeRemote remote("h[1-3]");
  remote.answers[0] = listening(4711);
  remote.answers[1] = tests::failed(ssh::Failure::connection_lost, "the connection was lost");
  const ListenerTrial trial = try_it(remote);
  EXPECT_EQ(trial.hosts[1].fault, "the connection was lost");
  EXPECT_EQ(trial.hosts[2].fault,
            "the request did not arrive: does a start-up file there, such as ~/.bashrc, read "
            "standard input?");
}

TEST(ListenerTrial, ClocksAreComparedEvenWhereNothingIsTried) {
  FakeRemote remote("h[1-3]");
  const auto now = std::chrono::system_clock::now().time_since_epoch() + std::chrono::hours(1);
  remote.answers[1] = tried(false, "", std::chrono::nanoseconds(now).count());
  TrialPlan plan = some_plan();
  plan.address = "";
  const ListenerTrial trial = try_it(remote, plan);
  EXPECT_EQ(remote.rounds.size(), 1u);
  ASSERT_TRUE(trial.hosts[1].clock_offset);
  EXPECT_NEAR(*trial.hosts[1].clock_offset, 3600, 600);
  EXPECT_FALSE(trial.hosts[0].clock_offset);
}

}  // namespace
}  // namespace dtool::cli
