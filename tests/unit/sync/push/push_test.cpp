// SPDX-License-Identifier: MIT
// The steps of a push, with hosts that answer what a test tells them to.
#include "sync/push/push.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>

#include "ssh/wire/copy.h"
#include "ssh/wire/push.h"
#include "sync/contents.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/sync/push/local_push.h"

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
std::string guessed() {
  return reply([](auto& each) {
    each.placed.emplace().is_whole = true;
    each.placed->removed = 1;
  });
}
std::string broken() {
  return reply([](auto& each) { each.placed.emplace(); });
}
std::string placed() {
  host::PlaceReply reply;
  reply.is_whole = true;
  reply.removed = 2;
  return host::to_frame(reply);
}
std::string lacks(std::uint64_t first, std::uint64_t count) {
  host::PlaceReply reply;
  reply.lacks = {{first, count}};
  reply.path = "~/c";
  return host::to_frame(reply);
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
    const auto& command = std::get<ssh::Command>(task.step);
    const auto frame = tests::frame_of(command.input);
    std::string step = frame.kind == host::Kind::place_request ? "place" : "parcel";
    if (frame.kind == host::Kind::tree_request) {
      const auto request = host::open<host::TreeRequest>(frame);
      step = request.has_package && tells_guesses ? "ask with a guess" : "ask";
    } else if (step == "place") {
      bases.push_back(host::open<host::PlaceRequest>(frame).basis);
    } else if (command.input_from) {
      parcels.push_back(command.input_from);
    } else {
      step = host::open<host::ParcelRequest>(frame).is_last ? "end" : "begin";
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
    if (step == "begin" || step == "parcel" || step == "end")
      result.out = host::to_frame(host::ParcelReply{});
    if (step == "place") result.out = placed();
    return result;
  }

  bool tells_guesses = false;
  std::vector<ssh::Host> names;
  /// By host and step, one after the other; the last one again and again.
  std::map<std::size_t, std::map<std::string, std::vector<ssh::HostResult>>> answers;
  std::vector<std::shared_ptr<const ssh::SharedBytes>> parcels;  ///< as they were sent
  Names bases;                                                   ///< that place requests had
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

TEST_F(PushTest, AHostThatHasSomethingUnknownIsSentTheListingAndThenWhatItLacks) {
  FakeRemote remote(1);
  Told told;
  remote.answers[0]["place"] = {ended(0, lacks(0, 1)), ended(0, placed())};
  const auto results = push(remote, small_tree(), {{0, "~/code"}}, told);
  EXPECT_EQ(remote.steps[0],
            (Names{"ask", "begin", "parcel", "end", "place", "begin", "parcel", "end", "place"}));
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_EQ(results[0].out, "");
  EXPECT_EQ(told.pushed[0].sent.files, 1U);
  EXPECT_EQ(told.pushed[0].removed, 2U);
  EXPECT_EQ(told.order, (std::vector<std::size_t>{0})) << "told once";
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

const Names kSent = {"ask", "begin", "parcel", "end", "place"};

TEST_F(PushTest, HostsThatLackTheSameShareOneParcel) {
  FakeRemote remote(3);
  Told told;
  for (const std::size_t host : {0, 2}) remote.answers[host]["ask"] = {ended(0, empty())};
  push(remote, small_tree(), {{0, "~/c"}, {1, "~/c"}, {2, "~/c"}}, told);
  EXPECT_EQ(remote.steps[1], kSent);
  EXPECT_EQ(remote.steps[0], (Names{"ask", "begin", "parcel", "parcel", "end", "place"}));
  EXPECT_EQ(remote.steps[2], remote.steps[0]);
  EXPECT_EQ(std::set(remote.parcels.begin(), remote.parcels.end()).size(), 2U)
      << "the file for two hosts, and the listing for all";
  EXPECT_EQ(told.pushed[2].removed, 2U);
  EXPECT_EQ(told.pushed[2].sent.files, 1U);
  EXPECT_EQ(told.pushed[1].sent.files, 0U);
}

TEST_F(PushTest, AHostThatIsSentSomethingElseMeanwhileFailsAndTheOthersGoOn) {
  FakeRemote remote(2);
  Told told;
  for (const std::size_t host : {0, 1}) remote.answers[host]["ask"] = {ended(0, empty())};
  remote.answers[1]["place"] = {ended(2, fault("another dtool is sending another tree there"))};
  const auto results = push(remote, small_tree(), {{0, "~/c"}, {1, "~/c"}}, told);
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_EQ(results.at(1).error, "another dtool is sending another tree there");
}

TEST_F(PushTest, WhatAHostSaysOfFilesThatAreNoneIsAFailure) {
  FakeRemote remote(1);
  Told told;
  for (const auto& [first, count] : {std::pair{0U, 2U}, {1U, 1U}, {~0U, ~0U}}) {
    remote.answers[0]["place"] = {ended(0, lacks(first, count))};
    EXPECT_EQ(push(remote, small_tree(), {{0, "~/c"}}, told).at(0).error,
              "its answer is about other files");
  }
  host::PlaceReply reply;
  reply.lacks = {{0, 1}, {0, 1}};
  remote.answers[0]["place"] = {ended(0, host::to_frame(reply))};
  EXPECT_EQ(push(remote, small_tree(), {{0, "~/c"}}, told).at(0).error,
            "its answer is about other files");
}

TEST_F(PushTest, AParcelThatCouldNotBeTakenIsForgivenIfTheTreeIsThere) {
  FakeRemote remote(2);
  Told told;
  for (const std::size_t host : {0, 1})
    remote.answers[host]["parcel"] = {ended(2, fault("another host goes on with this copy"))};
  remote.answers[1]["place"] = {ended(0, lacks(0, 1))};
  const auto results = push(remote, small_tree(), {{0, "~/c"}, {1, "~/c"}}, told);
  EXPECT_TRUE(results.at(0).ok());
  EXPECT_EQ(results.at(1).error, "another host goes on with this copy");
}

TEST_F(PushTest, WhyAParcelCouldNotBeTakenIsToldWhereThePlacingFailsToo) {
  FakeRemote remote(1);
  Told told;
  remote.answers[0]["parcel"] = {ended(2, fault("cannot write ~/c/a: No space left on device"))};
  remote.answers[0]["place"] = {ended(2, fault("cannot write: No space left on device"))};
  EXPECT_EQ(push(remote, small_tree(), {{0, "~/c"}}, told).at(0).error,
            "cannot write ~/c/a: No space left on device");
}

TEST_F(PushTest, AHostThatIsLostIsNotAskedAgain) {
  FakeRemote remote(1);
  Told told;
  ssh::HostResult lost;
  lost.failure = ssh::Failure::connection_lost;
  remote.answers[0]["parcel"] = {lost};
  const auto result = push(remote, small_tree(), {{0, "~/c"}}, told).at(0);
  EXPECT_EQ(remote.steps[0], (Names{"ask", "begin", "parcel"}));
  EXPECT_EQ(result.failure, ssh::Failure::connection_lost);
  EXPECT_EQ(result.hint, "what has come stays; the same command goes on from there");
  EXPECT_EQ(told.order, (std::vector<std::size_t>{0}));
}

TEST_F(PushTest, AHostThatFindsItsFolderInAnothersHandWaits) {
  FakeRemote remote(2);
  Told told;
  host::ParcelReply held;
  held.holder = 0;
  remote.answers[1]["begin"] = {ended(0, host::to_frame(held))};
  remote.answers[1]["ask"] = {ended(0, empty()), ended(0, whole())};
  const auto results = push(remote, small_tree(), {{0, "/c"}, {1, "/c"}}, told);
  EXPECT_EQ(remote.steps[1], (Names{"ask", "begin", "ask"}));
  EXPECT_TRUE(results.at(1).ok());
  EXPECT_EQ(told.order, (std::vector<std::size_t>{0, 1})) << "each is told once";
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
    before_ = tree();
    push(remote, before_, {{0, "~/c"}}, told_);
    scratch_.write("tree/b", "b");
  }
  Tree tree() { return read_tree(scratch_.path() / "tree", {}); }

  tests::TemporaryFolder scratch_;
  Told told_;
  Tree before_;
};

TEST_F(GuessTest, AHostThatHasTheLastTreeIsAskedAndSentInOneCommand) {
  GuessingRemote remote(1);
  remote.answers[0]["ask with a guess"] = {ended(0, guessed())};
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
  for (const std::size_t host : {0, 1}) {
    EXPECT_EQ(remote.steps[host].front(), "ask with a guess");
    EXPECT_EQ(remote.steps[host].back(), "place");
  }
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
  EXPECT_EQ(remote.steps[0], (Names{"ask with a guess", "ask", "begin", "parcel", "end", "place"}));
}

TEST_F(GuessTest, AHostThatSaysItHadAGuessWhereNoneWasSentIsSentTheTreeAllTheSame) {
  FakeRemote remote(2);
  remote.answers[0]["ask"] = {ended(0, guessed())};
  push(remote, tree(), {{0, "~/c"}, {1, "~/c"}}, told_, Relay::yes);
  EXPECT_EQ(remote.steps[0].back(), "place");
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

TEST_F(GuessTest, AHostThatHasAKnownTreeIsSentWhatChangedSince) {
  FakeRemote remote(1);
  const auto basis = list_tree(before_, read_contents(before_)).fingerprint;
  host::TreeReply known;
  known.basis = basis;
  remote.answers[0]["ask"] = {ended(0, host::to_frame(known))};
  push(remote, tree(), {{0, "~/c"}}, told_);
  EXPECT_EQ(told_.pushed[0].sent.files, 1U);
  EXPECT_EQ(remote.bases, Names{basis});
  known.has_begun = true;
  remote.answers[0]["ask"] = {ended(0, host::to_frame(known))};
  push(remote, tree(), {{0, "~/c"}}, told_);
  EXPECT_EQ(told_.pushed[0].sent.files, 0U) << "it says itself what it lacks";
  EXPECT_EQ(remote.bases, (Names{basis, ""}));
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

TEST_F(PushTest, WhatIsNoReplyIsAFailure) {
  FakeRemote remote(1);
  Told told;
  for (const std::string step : {"ask", "begin", "parcel", "end", "place"}) {
    remote.answers[0] = {{step, {ended(0, "nothing of ours\n")}},
                         {"place", {ended(0, step == "place" ? "nor this\n" : lacks(0, 1))}}};
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
