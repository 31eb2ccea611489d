// SPDX-License-Identifier: MIT
// Which hosts count as sharing what is fetched from them.
#include "sync/look.h"

#include <gtest/gtest.h>

#include "ssh/wire/tree.h"
#include "tests/unit/fake_remote.h"

namespace dtool::tree_sync {
namespace {

std::string reply(std::uint64_t inode, std::optional<std::int64_t> holder = std::nullopt) {
  return host::to_frame(host::LookReply{inode, "id name boot 1", holder});
}

std::vector<SourceAnswer> look(tests::FakeRemote& remote) {
  std::vector<SourceQuestion> questions;
  for (std::size_t i = 0; i < remote.names.size(); ++i) questions.push_back({i, {"/out"}, "run"});
  ssh::Events nobody;
  return look_at_sources(remote, questions, nobody, std::chrono::seconds(1));
}

TEST(Look, HostsOfEqualNumbersThatFindNoMarkShareNothing) {
  tests::FakeRemote remote("h[1-3]");
  for (std::size_t i = 0; i < 3; ++i) remote.answers[i] = tests::answered(reply(7));
  for (const SourceAnswer& each : look(remote)) EXPECT_FALSE(each.same_as);
}

TEST(Look, TheHostsThatFindOnesMarkShareItsFolderAndTheFirstIsNamed) {
  tests::FakeRemote remote("h[1-4]");
  remote.answers[0] = tests::answered(reply(7, 2));
  remote.answers[1] = tests::answered(reply(7));
  remote.answers[2] = tests::answered(reply(7));
  remote.answers[3] = tests::answered(reply(8));
  const auto found = look(remote);
  EXPECT_FALSE(found[0].same_as);
  EXPECT_FALSE(found[1].same_as);
  EXPECT_EQ(found[2].same_as, 0U);
  EXPECT_FALSE(found[3].same_as);
  ASSERT_EQ(remote.rounds.size(), 3U);
  const auto asked = [&](std::size_t host, std::size_t round) {
    return tests::request_of<host::LookRequest>(remote.input_of(host, round));
  };
  EXPECT_EQ(asked(0, 0).run_id, "run");
  EXPECT_EQ(asked(0, 0).mark, "");
  EXPECT_EQ(remote.input_of(3, 1), "");
  EXPECT_EQ(asked(0, 1).mark, asked(1, 1).mark);
  EXPECT_EQ(asked(0, 1).mark.size(), 16U);
  EXPECT_EQ(remote.input_of(0, 2), "");  // it made none
  EXPECT_TRUE(asked(1, 2).lets_go && asked(2, 2).lets_go);
  EXPECT_EQ(asked(2, 2).mark, asked(0, 1).mark);
}

TEST(Look, AHostThatClaimsAMarkWhichNoOtherMadeSharesNothing) {
  tests::FakeRemote remote("h[1-2]");
  remote.answers[0] = tests::answered(reply(7));
  remote.answers[1] = tests::answered(reply(7, 4711));
  for (const SourceAnswer& each : look(remote)) EXPECT_FALSE(each.same_as);
}

TEST(Look, HostsOfOtherNumbersAreNotWrittenTo) {
  tests::FakeRemote remote("h[1-2]");
  remote.answers[0] = tests::answered(reply(7));
  remote.answers[1] = tests::answered(reply(8));
  for (const SourceAnswer& each : look(remote)) EXPECT_FALSE(each.same_as);
  EXPECT_EQ(remote.rounds.size(), 1U);
}

TEST(Look, WhatIsNotThereIsToldAndAsksNoFurther) {
  tests::FakeRemote remote("h[1-2]");
  remote.answers[0] = tests::answered(reply(7));
  remote.answers[1] = tests::answered(host::to_frame(host::Fault{"there is no folder /out"}), 2);
  const auto found = look(remote);
  EXPECT_TRUE(found[0].result.ok());
  EXPECT_EQ(found[1].result.error, "there is no folder /out");
  EXPECT_EQ(remote.rounds.size(), 1U);
}

}  // namespace
}  // namespace dtool::tree_sync
