// SPDX-License-Identifier: MIT
// The steps of a push, with hosts that answer what a test tells them to.
#include "sync/push.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>

#include "ssh/host/messages/tree.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/sync/local_push.h"

namespace dtool::tree_sync {
namespace {

using Names = std::vector<std::string>;

std::string reply(void (*change)(host::TreeReply&)) {
  host::TreeReply reply;
  change(reply);
  return host::to_frame(reply);
}

std::string empty() {
  return reply([](auto& each) { each.is_empty = true; });
}
std::string whole() {
  return reply([](auto& each) { each.is_whole = true; });
}
std::string same_folder() {
  return reply([](auto& each) { each.is_same_folder = true; });
}
std::string shared() {
  return reply([](auto& each) { each.holder = 0; });
}
std::string unpacked() {
  return reply([](auto& each) {
    each.unpacked.emplace().is_whole = true;
    each.unpacked->removed = 1;
  });
}
std::string broken() {
  return reply([](auto& each) { each.unpacked.emplace().broken = "zstd: corrupted"; });
}
std::string fault(const std::string& sentence, const std::string& hint = "") {
  return host::to_frame(host::Fault{sentence, hint});
}

/// Hosts that answer what a test tells them to, and remember the steps they were asked for.
struct FakeRemote : ssh::Remote {
  explicit FakeRemote(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      names.push_back(ssh::parse_host("host" + std::to_string(i)));
  }

  const std::vector<ssh::Host>& hosts() const override { return names; }
  bool interrupted() const override { return false; }
  std::vector<ssh::HostResult> run(std::vector<ssh::Task> tasks, ssh::Events& events,
                                   const ssh::RunOptions&) override {
    std::vector<ssh::HostResult> results;
    for (const ssh::Task& task : tasks) {
      ssh::HostResult result = tell(task, events);
      for (auto next = events.next_task(task.host, result); next;
           next = events.next_task(task.host, result)) {
        const auto before = result.elapsed;
        result = tell(next->task.value(), events);
        result.elapsed += before;
      }
      events.on_result(task.host, result);
      results.push_back(std::move(result));
    }
    return results;
  }

  ssh::HostResult tell(const ssh::Task& task, ssh::Events& events) {
    ssh::HostResult result = answer(task);
    result.host = names[task.host];
    result.elapsed = std::chrono::milliseconds(10);
    if (task.options && task.options->keep_output == ssh::KeepOutput::no) {
      events.on_output(task.host, ssh::Stream::err, result.err);
      events.on_output(task.host, ssh::Stream::out, result.out);
      result.out.clear();
      result.err.clear();
    }
    return result;
  }

  ssh::HostResult answer(const ssh::Task& task) {
    const bool is_rsync = std::holds_alternative<ssh::LocalProgram>(task.step);
    std::string step = "rsync";
    if (!is_rsync) {
      const auto frame = tests::frame_of(std::get<ssh::Command>(task.step).input);
      step = frame.kind == host::Kind::prepare_request ? "prepare" : "prune";
      if (frame.kind == host::Kind::tree_request) {
        const auto request = host::open<host::TreeRequest>(frame);
        step = request.is_asked ? "unpack" : "ask";
        if (!request.is_asked && request.has_package && tells_guesses) step = "ask with a guess";
      }
      if (step == "unpack") packages.push_back(std::get<ssh::Command>(task.step).input_from);
    }
    steps[task.host].push_back(step);
    std::vector<ssh::HostResult>& prepared = answers[task.host][step];
    if (!prepared.empty()) {
      const ssh::HostResult first = prepared.front();
      if (prepared.size() > 1) prepared.erase(prepared.begin());
      return first;
    }
    ssh::HostResult result;
    result.exit_code = 0;
    if (step.starts_with("ask")) result.out = host::to_frame(host::TreeReply{});
    if (step == "unpack") result.out = unpacked();
    if (step == "prepare") result.out = host::to_frame(host::PrepareReply{"/lock", ""});
    if (step == "rsync") result.out = "\nNumber of regular files transferred: 3\n";
    if (step == "prune") result.out = host::to_frame(host::PruneReply{2});
    return result;
  }

  bool tells_guesses = false;
  std::vector<ssh::Host> names;
  /// By host and step, one after the other; the last one again and again.
  std::map<std::size_t, std::map<std::string, std::vector<ssh::HostResult>>> answers;
  std::vector<std::shared_ptr<const ssh::SharedBytes>> packages;  ///< as they were sent
  std::map<std::size_t, Names> steps;
};

Tree small_tree() {
  Tree tree;
  tree.root = "/usr";
  tree.files = {"bin"};
  return tree;
}

ssh::HostResult ended(int exit_code, const std::string& out, const std::string& err = "") {
  ssh::HostResult result;
  result.exit_code = exit_code;
  result.out = out;
  result.err = err;
  return result;
}

/// A home of its own, where listings are kept.
class PushTest : public ::testing::Test {
 protected:
  PushTest() { ::setenv("HOME", home_.path().c_str(), 1); }
  tests::TemporaryFolder home_;
};

TEST_F(PushTest, AHostIsPreparedSentToAndPruned) {
  FakeRemote remote(1);
  Told told;
  const auto results = push(remote, small_tree(), {{0, "~/code"}}, told);
  EXPECT_EQ(remote.steps[0], (Names{"ask", "prepare", "rsync", "prune"}));
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_EQ(results[0].out, "");
  EXPECT_EQ(results[0].elapsed, std::chrono::milliseconds(40));
  EXPECT_EQ(told.pushed[0].sent.files, 3U);
  EXPECT_EQ(told.pushed[0].removed, 2U);
}

TEST_F(PushTest, AHostThatHasTheTreeIsAskedAndNoMore) {
  FakeRemote remote(3);
  Told told;
  remote.answers[0]["ask"] = {ended(0, whole())};
  remote.answers[1]["ask"] = {ended(0, same_folder()), ended(0, same_folder())};
  remote.answers[2]["ask"] = {ended(0, same_folder()), ended(0, whole())};
  const auto results =
      push(remote, small_tree(), {{0, "~/code"}, {1, "~/code"}, {2, "~/code"}}, told);
  EXPECT_EQ(remote.steps[0], (Names{"ask"}));
  // That its folder is the tree's own a host proves by a mark.
  EXPECT_EQ(remote.steps[1], (Names{"ask", "ask"}));
  EXPECT_EQ(remote.steps[2], (Names{"ask", "ask"}));
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_FALSE(told.pushed[0].is_the_tree);
  EXPECT_TRUE(told.pushed[1].is_the_tree);
  EXPECT_FALSE(told.pushed[2].is_the_tree);
}

TEST_F(PushTest, HostsThatLackTheSameShareOnePackage) {
  FakeRemote remote(3);
  Told told;
  for (const std::size_t host : {0, 2}) remote.answers[host]["ask"] = {ended(0, empty())};
  push(remote, small_tree(), {{0, "~/c"}, {1, "~/c"}, {2, "~/c"}}, told);
  EXPECT_EQ(remote.steps[0], (Names{"ask", "unpack"}));
  EXPECT_EQ(remote.steps[1], (Names{"ask", "prepare", "rsync", "prune"}));
  ASSERT_EQ(remote.packages.size(), 2U);
  EXPECT_EQ(remote.packages[0], remote.packages[1]);
  EXPECT_EQ(told.pushed[2].removed, 1U);
  EXPECT_EQ(told.pushed[2].sent.files, 1U);
}

TEST_F(PushTest, WhereAPackageDoesNotDoRsyncDoes) {
  FakeRemote remote(3);
  Told told;
  for (const std::size_t host : {0, 1, 2}) remote.answers[host]["ask"] = {ended(0, empty())};
  remote.answers[0]["unpack"] = {ended(0, broken())};
  ssh::HostResult not_packed;
  not_packed.failure = ssh::Failure::local_program;
  remote.answers[1]["unpack"] = {not_packed};
  remote.answers[2]["unpack"] = {ended(2, fault("another dtool is sending another tree there"))};
  const auto results = push(remote, small_tree(), {{0, "~/c"}, {1, "~/c"}, {2, "~/c"}}, told);
  const Names all = {"ask", "unpack", "prepare", "rsync", "prune"};
  EXPECT_EQ(remote.steps[0], all);
  EXPECT_EQ(remote.steps[1], all);
  EXPECT_TRUE(results.at(0).ok() && results.at(1).ok());
  EXPECT_EQ(remote.steps[2], (Names{"ask", "unpack"})) << "the newer tree has its turn";
  EXPECT_FALSE(results.at(2).ok());
}

TEST_F(PushTest, AHostThatCannotOpenWhatIsPassedOnIsToldOf) {
  FakeRemote remote(2);
  Told told;
  remote.answers[0]["ask"] = {ended(0, empty())};
  remote.answers[0]["unpack"] = {ended(0, broken())};
  const Tree tree = small_tree();
  const auto pushing =
      make_push(remote.names, tree, {{0, "~/c"}, {1, "~/c"}}, told, {}, Relay::yes);
  remote.run({pushing->first_task(0), pushing->first_task(1)}, *pushing, {});
  ASSERT_EQ(pushing->missed().size(), 1U);
  EXPECT_EQ(pushing->missed()[0].host, 0U);
  EXPECT_EQ(pushing->missed()[0].reason, "zstd: corrupted");
  EXPECT_EQ(remote.steps[0], (Names{"ask", "unpack", "prepare", "rsync", "prune"}));
}

TEST_F(PushTest, ATreeThatIsNotRememberedHereIsComparedByRsync) {
  FakeRemote remote(1);
  Told told;
  remote.answers[0]["ask"] = {ended(0, reply([](auto& each) { each.basis = "../secret"; }))};
  push(remote, small_tree(), {{0, "~/c"}}, told);
  EXPECT_EQ(remote.steps[0], (Names{"ask", "prepare", "rsync", "prune"}));
}

struct GuessingRemote : FakeRemote {
  explicit GuessingRemote(std::size_t hosts) : FakeRemote(hosts) { tells_guesses = true; }
};

/// A tree that is sent to one host, from scratch, and then has one more file.
class GuessTest : public PushTest {
 protected:
  GuessTest() {
    scratch_.write("tree/a", "a");
    FakeRemote remote(1);
    remote.answers[0]["ask"] = {ended(0, empty())};
    push(remote, tree(), {{0, "~/c"}}, told_);
    scratch_.write("tree/b", "b");
  }
  Tree tree() { return read_tree(scratch_.path() / "tree", {}); }

  tests::TemporaryFolder scratch_;
  Told told_;
};

TEST_F(GuessTest, AHostThatHasTheLastTreeIsAskedAndSentInOneCommand) {
  GuessingRemote remote(1);
  remote.answers[0]["ask with a guess"] = {ended(0, unpacked())};
  EXPECT_TRUE(push(remote, tree(), {{0, "~/c"}}, told_).at(0).ok());
  EXPECT_EQ(remote.steps[0], (Names{"ask with a guess"}));
  EXPECT_EQ(told_.pushed[0].sent.files, 1U);
  EXPECT_EQ(told_.pushed[0].removed, 1U);
}

TEST_F(GuessTest, AGuessThatIsWrongOrNoGoodIsFollowedByWhatTheHostLacks) {
  GuessingRemote remote(4);
  remote.answers[0]["ask with a guess"] = {ended(0, empty())};
  remote.answers[1]["ask with a guess"] = {ended(0, broken())};
  remote.answers[2]["ask with a guess"] = {ended(0, whole())};
  remote.answers[3]["ask with a guess"] = {ended(2, fault("the disk is full"))};
  const auto results =
      push(remote, tree(), {{0, "~/c"}, {1, "~/c"}, {2, "~/c"}, {3, "~/c"}}, told_);
  EXPECT_EQ(remote.steps[0], (Names{"ask with a guess", "unpack"}));
  EXPECT_EQ(remote.steps[1], (Names{"ask with a guess", "prepare", "rsync", "prune"}));
  EXPECT_EQ(remote.steps[2], (Names{"ask with a guess"}));
  EXPECT_TRUE(results.at(0).ok() && results.at(1).ok() && results.at(2).ok());
  EXPECT_EQ(results.at(3).error, "the disk is full");
}

TEST_F(GuessTest, WhereTheGuessCannotBeMadeTheHostIsAskedWithoutIt) {
  GuessingRemote remote(1);
  ssh::HostResult not_packed;
  not_packed.failure = ssh::Failure::local_program;
  remote.answers[0]["ask with a guess"] = {not_packed};
  EXPECT_TRUE(push(remote, tree(), {{0, "~/c"}}, told_).at(0).ok());
  EXPECT_EQ(remote.steps[0], (Names{"ask with a guess", "ask", "prepare", "rsync", "prune"}));
}

TEST_F(GuessTest, AHostThatSaysItHadAGuessWhereNoneWasSentIsSentTheTreeAllTheSame) {
  FakeRemote remote(2);
  remote.answers[0]["ask"] = {ended(0, unpacked())};
  push(remote, tree(), {{0, "~/c"}, {1, "~/c"}}, told_, Relay::yes);
  EXPECT_EQ(remote.steps[0], (Names{"ask", "prepare", "rsync", "prune"}));
}

TEST_F(GuessTest, WhereNotEvenTheQuestionCanBeAskedThatIsTheHostsResult) {
  FakeRemote remote(2);
  ssh::HostResult no_process;
  no_process.failure = ssh::Failure::local_program;
  remote.answers[0]["ask"] = {no_process};
  const auto results = push(remote, tree(), {{0, "~/c"}, {1, "~/c"}}, told_, Relay::yes);
  EXPECT_EQ(results.at(0).failure, ssh::Failure::local_program);
  EXPECT_EQ(remote.steps[0], (Names{"ask"}));
}

TEST_F(GuessTest, NothingIsGuessedWhereItWouldBeAWasteOrCannotBeRight) {
  const auto first_step = [this](const std::string& host, Relay relay) {
    GuessingRemote remote(2);
    remote.names[0] = ssh::parse_host(host);
    push(remote, tree(), {{0, "~/c"}, {1, "~/c"}}, told_, relay);
    return remote.steps[0].front();
  };
  EXPECT_EQ(first_step("a", Relay::yes), "ask");
  EXPECT_EQ(first_step("local", Relay::no), "ask");
  EXPECT_EQ(first_step("a", Relay::no), "ask") << "the tree was sent as it is now";
  scratch_.write("tree/b", "changed");
  EXPECT_EQ(first_step("a", Relay::no), "ask with a guess");
  scratch_.write("tree/b", std::string(40'000, 'x'));
  EXPECT_EQ(first_step("a", Relay::no), "ask") << "so much is not sent in vain";
}

TEST_F(GuessTest, WhereNothingWasSentYetHostsAreTakenToHaveNothing) {
  const auto first_step = [this](const std::string& name) {
    GuessingRemote remote(1);
    push(remote, read_tree(scratch_.path() / name, {}), {{0, "~/c"}}, told_);
    return remote.steps[0].front();
  };
  scratch_.write("other/a", std::string(1'000'000, 'x'));
  EXPECT_EQ(first_step("other"), "ask with a guess");
  scratch_.write("other/b", std::string(1'000'000, 'x'));
  EXPECT_EQ(first_step("other"), "ask") << "so much is sent in vain but once";
  scratch_.write("large/a", std::string(9'000'000, 'x'));
  EXPECT_EQ(first_step("large"), "ask");
}

TEST_F(PushTest, AHostThatSharesItsFolderWaitsAndIsAskedAgain) {
  FakeRemote remote(2);
  Told told;
  remote.answers[1]["ask"] = {ended(0, shared()), ended(0, whole())};
  const auto results = push(remote, small_tree(), {{0, "/c"}, {1, "/c"}}, told);
  EXPECT_EQ(remote.steps[1], (Names{"ask", "ask"}));
  EXPECT_TRUE(results.at(1).ok());
  EXPECT_EQ(told.order, (std::vector<std::size_t>{0, 1})) << "each is told once";
}

TEST_F(PushTest, AHostThatSaysForEverThatItSharesItsFolderFails) {
  FakeRemote remote(2);
  Told told;
  remote.answers[1]["ask"] = {ended(0, shared())};
  const auto results = push(remote, small_tree(), {{0, "/c"}, {1, "/c"}}, told);
  EXPECT_EQ(remote.steps[1], (Names{"ask", "ask"}));
  EXPECT_EQ(results.at(1).exit_code, 1);
  EXPECT_EQ(told.order, (std::vector<std::size_t>{0, 1}));
}

TEST_F(PushTest, AFailedHostIsLeftAloneAndTheOthersGoOn) {
  FakeRemote remote(3);
  Told told;
  remote.answers[0]["rsync"] = {
      ended(11, "", "rsync: [receiver] write failed on \"a\": No space left on device (28)\n")};
  remote.answers[1]["prepare"] = {ended(2, fault("rsync is not installed", "get it"))};
  const auto results = push(remote, small_tree(), {{2, "/c"}, {0, "~/c"}, {1, "~/c"}}, told);
  EXPECT_EQ(remote.steps[0], (Names{"ask", "prepare", "rsync"}));
  EXPECT_EQ(remote.steps[1], (Names{"ask", "prepare"}));
  EXPECT_EQ(remote.steps[2], (Names{"ask", "prepare", "rsync", "prune"}));
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_EQ(results.at(1).exit_code, 11);
  EXPECT_NE(results[1].error.find("No space left"), std::string::npos) << results[1].error;
  EXPECT_EQ(
      results[1].hint,
      "free some space there; if df -h shows enough, df -i shows that its inodes are used up");
  EXPECT_EQ(results.at(2).error, "rsync is not installed");
  EXPECT_EQ(results[2].hint, "get it");
  EXPECT_EQ(told.order, (std::vector<std::size_t>{2, 0, 1})) << "no host waits for another";
}

TEST_F(PushTest, WhatIsNoReplyIsAFailure) {
  FakeRemote remote(1);
  Told told;
  for (const std::string step : {"ask", "prepare", "prune"}) {
    remote.answers[0] = {{step, {ended(0, "nothing of ours\n")}}};
    EXPECT_FALSE(push(remote, small_tree(), {{0, "~/c"}}, told).at(0).ok()) << step;
  }
}

TEST_F(PushTest, AFolderMustStartAtTheRootOrAtHome) {
  FakeRemote remote(2);
  Told told;
  for (const char* folder : {"", "code", "~other/code", "../code"}) {
    EXPECT_THROW(push(remote, small_tree(), {{0, folder}}, told), std::invalid_argument) << folder;
  }
  EXPECT_THROW(push(remote, small_tree(), {{0, "/a"}, {0, "/b"}}, told), std::invalid_argument);
  EXPECT_TRUE(remote.steps.empty());
}

}  // namespace
}  // namespace dtool::tree_sync
