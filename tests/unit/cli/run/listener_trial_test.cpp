// Machine 0 listens, the others connect, machine 0 ends; and what they say of it.
#include "cli/run/listener_trial.h"

#include <gtest/gtest.h>

#include "tests/unit/fake_remote.h"
#include "tests/unit/syntax.h"

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

TEST(ListenerTrial, TheListenerIsEndedWhateverTheOthersSay) {
  FakeRemote remote("h[1-3]");
  remote.answers[0] = answered("dtool-answer interface=eth1\ndtool-answer listener=4711\n");
  remote.answers[1] = answered("dtool-answer interface=eth0\ndtool-answer reached=yes\n");
  remote.answers[2] = answered("dtool-answer interface=eth0\ndtool-answer fault=no answer\n");
  const ListenerTrial trial = try_it(remote);
  ASSERT_EQ(remote.rounds.size(), 3u);
  EXPECT_EQ(remote.rounds[1].size(), 3u);
  EXPECT_EQ(remote.input_of(0, 2).substr(0, 9), "kill 4711");
  EXPECT_TRUE(trial.listened);
  EXPECT_EQ(trial.hosts[0].interface, "eth1");
  EXPECT_TRUE(trial.hosts[1].reached);
  EXPECT_EQ(trial.hosts[1].interface, "eth0");
  EXPECT_FALSE(trial.hosts[2].reached);
  EXPECT_EQ(trial.hosts[2].fault, "no answer");
}

TEST(ListenerTrial, AFaultWithoutWordsIsOne) {
  FakeRemote remote("h[1-2]");
  remote.answers[0] = answered("dtool-answer interface=eth1\ndtool-answer listener=4711\n");
  remote.answers[1] = answered("dtool-answer interface=eth0\ndtool-answer fault=\n");
  TrialPlan plan = some_plan();
  plan.hosts = {0, 1};
  EXPECT_NE(try_it(remote, plan).hosts[1].fault, "");
}

TEST(ListenerTrial, NobodyConnectsWhereNothingListens) {
  FakeRemote remote("h[1-3]");
  remote.answers[0] = answered("dtool-answer fault=Address already in use\n");
  const ListenerTrial trial = try_it(remote);
  EXPECT_EQ(remote.rounds.size(), 2u);
  EXPECT_NE(remote.input_of(1, 1).find("\naddress=''\n"), std::string::npos)
      << remote.input_of(1, 1);
  EXPECT_EQ(trial.fault, "cannot listen on port 20123: Address already in use");
  EXPECT_FALSE(trial.not_possible);
  EXPECT_EQ(trial.hosts[1].fault, "");
  remote.answers[0] = answered("dtool-answer no_tool=yes\n");
  EXPECT_TRUE(try_it(remote).not_possible);
}

TEST(ListenerTrial, HostsThatAreGoneMeanwhileAreNamed) {
  FakeRemote remote("h[1-3]");
  remote.answers[0] = answered("dtool-answer listener=1\n");
  remote.answers[1] = tests::failed(ssh::Failure::connection_lost, "the connection was lost");
  const ListenerTrial trial = try_it(remote);
  EXPECT_EQ(trial.hosts[1].fault, "the connection was lost");
  EXPECT_EQ(trial.hosts[2].fault, "exit code 0");
}

TEST(ListenerTrial, ClocksAreComparedEvenWhereNothingIsTried) {
  FakeRemote remote("h[1-3]");
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  remote.answers[1] = answered("welcome\ndtool-answer clock=" + std::to_string(now + 3600) + "\n");
  TrialPlan plan = some_plan();
  plan.address = "";
  const ListenerTrial trial = try_it(remote, plan);
  EXPECT_EQ(remote.rounds.size(), 1u);
  ASSERT_TRUE(trial.hosts[1].clock_offset);
  EXPECT_NEAR(*trial.hosts[1].clock_offset, 3600, 600);
  EXPECT_FALSE(trial.hosts[0].clock_offset);
}

TEST(ListenerTrial, BashReadsTheScripts) {
  FakeRemote remote("h[1-3]");
  remote.answers[0] = answered("dtool-answer listener=1\n");
  TrialPlan plan = some_plan();
  plan.address = "it's $(an) address";
  try_it(remote, plan);
  EXPECT_EQ(tests::syntax_fault(remote.input_of(0, 0)), "");
  EXPECT_EQ(tests::syntax_fault(remote.input_of(1, 1)), "");
}

}  // namespace
}  // namespace dtool::cli
