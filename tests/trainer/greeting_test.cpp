// SPDX-License-Identifier: MIT
// How processes of a run know each other, and what a door does with those that are not of the run.
#include "trainer/launch/greeting.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include "tests/unit/temporary_folder.h"
#include "trainer/launch/front_door.h"
#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using std::chrono::seconds;

const RunToken kToken("0123456789abcdef0123456789abcdef");
const RunToken kOther("0123456789abcdef0123456789abcdee");

TEST(RunToken, ProvesByHmacWithSha256) {
  // By Python: hmac.new(b"Jefe", b"4:what8:do ya wa", "sha256").hexdigest()
  const RunToken token("Jefe");
  EXPECT_EQ(token.prove({"what", "do ya wa"}),
            "127ff45363c15a624f483dfc75269ed500add674fea5ab34554e1b5bab842c5b");
  EXPECT_NE(token.prove({"a", "b"}), token.prove({"ab"}));
  EXPECT_NE(token.prove({"a", "b"}), token.prove({"a", "b", ""}));
  EXPECT_NE(token.prove({"a"}), RunToken("jefe").prove({"a"}));
}

class TokenFile : public testing::Test {
 protected:
  std::string path(const std::string& content, mode_t mode) {
    const auto file = folder_.path() / "token";
    std::ofstream(file) << content;
    chmod(file.c_str(), mode);
    return file;
  }
  static RunToken read(const std::string& path) {
    return read_run_token([&](const std::string& name) {
      return name == kTokenFileVariable ? std::optional(path) : std::nullopt;
    });
  }
  tests::TemporaryFolder folder_;
};

TEST_F(TokenFile, HoldsTheToken) {
  const auto token = read(path("0123456789abcdef0123456789abcdef\n", 0600));
  EXPECT_EQ(token.prove({"a"}), kToken.prove({"a"}));
}

TEST_F(TokenFile, IsRefusedWhereOthersMayReadIt) {
  EXPECT_THROW(read(path("0123456789abcdef0123456789abcdef", 0640)), UsageError);
}

TEST_F(TokenFile, IsRefusedWhereItHoldsNone) {
  EXPECT_THROW(read(path("0123456789abcdef", 0600)), UsageError);
  EXPECT_THROW(read(path("0123456789abcdef0123456789abcde;", 0600)), UsageError);
  EXPECT_THROW(read(path(std::string(1000, 'a'), 0600)), UsageError);
  EXPECT_THROW(read(folder_.path()), UsageError);
  EXPECT_THROW(read(folder_.path() / "absent"), UsageError);
}

TEST(Greeting, IsFourLinesThatEachProveWhoSpeaks) {
  Greeting caller(kToken, "door");
  Greeting host(kToken, "door");
  const auto known = host.answer(caller.begin());
  ASSERT_TRUE(known);
  const auto here = caller.reply(*known, "1 2 3");
  ASSERT_TRUE(here);
  EXPECT_EQ(host.hear(*here), "1 2 3");
  EXPECT_EQ(caller.enter(host.welcome("4 5")), "4 5");
}

TEST(Greeting, OfAnotherTokenIsNotAnswered) {
  Greeting caller(kOther, "door");
  Greeting host(kToken, "door");
  EXPECT_FALSE(host.answer(caller.begin()));
}

TEST(Greeting, OfAnotherDoorOrVersionIsNotAnswered) {
  Greeting caller(kToken, "door");
  Greeting host(kToken, "another");
  EXPECT_FALSE(host.answer(caller.begin()));
  std::string line = caller.begin();
  line.replace(line.find(" 3 "), 3, " 4 ");
  EXPECT_FALSE(Greeting(kToken, "door").answer(line));
}

TEST(Greeting, AHostWithoutTheTokenIsNotBelieved) {
  Greeting caller(kToken, "door");
  Greeting host(kOther, "door");
  const std::string first = caller.begin();
  host.answer(first);
  EXPECT_FALSE(caller.reply("known " + random_nonce() + " " + kOther.prove({first}), "words"));
  EXPECT_FALSE(caller.enter(host.welcome("words")));
}

TEST(Greeting, WhatWasOverheardIsOfNoUseAgain) {
  Greeting caller(kToken, "door");
  Greeting host(kToken, "door");
  const std::string first = caller.begin();
  const auto known = host.answer(first);
  const auto here = caller.reply(*known, "words");
  Greeting later(kToken, "door");
  ASSERT_TRUE(later.answer(first));
  EXPECT_FALSE(later.hear(*here));
  EXPECT_FALSE(Greeting(kToken, "door").reply(*known, "words"));
}

TEST(Greeting, WordsThatWereChangedOnTheWayAreNotHeard) {
  Greeting caller(kToken, "door");
  Greeting host(kToken, "door");
  auto here = *caller.reply(*host.answer(caller.begin()), "1 2 1 red02");
  here.back() = '3';
  EXPECT_FALSE(host.hear(here));
}

/// What a door does while nobody of the run is there.
std::vector<Guest> take_within(FrontDoor& door, seconds patience,
                               const std::function<bool()>& is_over) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!is_over() && std::chrono::steady_clock::now() < deadline) {
    pollfd waited{door.descriptor(), POLLIN, 0};
    poll(&waited, 1, 100);
    auto guests = door.take();
    if (!guests.empty()) return guests;
  }
  return {};
}

TEST(FrontDoor, LetsInWhoKnowsTheTokenThroughACrowd) {
  FrontDoor door({"127.0.0.1", 0}, "door", 1, kToken);
  const Endpoint there{"127.0.0.1", door.port()};
  std::vector<std::unique_ptr<LineSocket>> crowd;
  for (int i = 0; i < 400; ++i) {
    crowd.push_back(std::make_unique<LineSocket>(connect_within(there, seconds(10))));
    if (i % 3 == 0) crowd.back()->send("hello 2 1 9 9 stranger");
  }
  auto call = std::async(std::launch::async,
                         [&] { return call_at(there, "door", "one", seconds(60), kToken); });
  auto guests = take_within(door, seconds(60), [] { return false; });
  ASSERT_EQ(guests.size(), 1U);
  EXPECT_EQ(guests.front().words(), "one");
  const auto socket = guests.front().welcome("come in");
  const Call made = call.get();
  EXPECT_EQ(made.welcome, "come in");
  const LineSocket end(made.descriptor);
  for (const auto& each : crowd) EXPECT_TRUE(each->receive().empty());
}

TEST(FrontDoor, LetsNobodyInWhoHasAnotherToken) {
  FrontDoor door({"127.0.0.1", 0}, "door", 1, kToken);
  auto call = std::async(std::launch::async, [&] {
    return call_at({"127.0.0.1", door.port()}, "door", "one", seconds(60), kOther);
  });
  const auto is_over = [&] { return call.wait_for(seconds(0)) == std::future_status::ready; };
  EXPECT_TRUE(take_within(door, seconds(60), is_over).empty());
  EXPECT_THROW(call.get(), NotOfThisRun);
}

TEST(LineSocket, HangsUpOnALineThatIsTooLong) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  LineSocket reader(ends[0], 10);
  LineSocket writer(ends[1]);
  writer.send("0123456789");
  EXPECT_EQ(reader.receive(), std::vector<std::string>{"0123456789"});
  EXPECT_FALSE(reader.has_ended());
  writer.send("0123456789a");
  EXPECT_TRUE(reader.receive().empty());
  EXPECT_TRUE(reader.has_ended());
}

}  // namespace
}  // namespace dtool::trainer
