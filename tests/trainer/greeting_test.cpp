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

#include "tests/fuzz/stranger.h"
#include "tests/unit/temporary_folder.h"
#include "trainer/launch/network.h"
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

/// Those that a door lets in, which it does not do while nobody of the run is there.
std::vector<host::Caller> take_within(FrontDoor& door, seconds patience,
                                      const std::function<bool()>& is_over) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!is_over() && std::chrono::steady_clock::now() < deadline) {
    door.watch().wait(std::chrono::milliseconds(100));
    auto callers = door.take();
    if (!callers.empty()) return callers;
  }
  return {};
}

class GreetingAtADoor : public testing::Test {
 protected:
  Endpoint there() const { return {"127.0.0.1", door_.port()}; }

  /// What a peer is told that says this, until it is let in or hung up on; with whether it was let
  /// in.
  std::pair<std::string, bool> say(const fuzz::Stranger& peer, const std::string& bytes) {
    peer.say(bytes);
    std::string heard;
    for (bool is_over = false; !is_over;) {
      door_.watch().wait(std::chrono::milliseconds(10));
      const bool is_let_in = !door_.take().empty();
      heard += peer.hear(is_over);
      if (is_let_in) return {heard, true};
      if (heard.size() == host::kWelcomeSize && !is_greeted_) break;
    }
    is_greeted_ = !heard.empty();
    return {heard, false};
  }

  const std::string hello_ = host::make_hello(kToken.for_door("door"), 3);
  bool is_greeted_ = false;
  FrontDoor door_{{"127.0.0.1", 0}, "door", 1, kToken};
};

std::string frame_of(const std::string& hello, const std::string& welcome) {
  return host::Channel(kToken.for_door("door"), hello, welcome, host::End::machine, 100).seal("");
}

TEST_F(GreetingAtADoor, IsFourMessagesThatEachProveWhoSpeaks) {
  const fuzz::Stranger peer(there().port);
  const std::string welcome = say(peer, hello_).first;
  EXPECT_TRUE(host::is_welcome(kToken.for_door("door"), hello_, welcome));
  EXPECT_TRUE(say(peer, frame_of(hello_, welcome)).second);
}

TEST_F(GreetingAtADoor, OfAnotherTokenDoorOrVersionIsNotAnswered) {
  for (const std::string& token : {kOther.for_door("door"), kToken.for_door("another"),
                                   kToken.prove({"dtool-trainer 3", "door"})}) {
    const fuzz::Stranger peer(there().port);
    EXPECT_EQ(say(peer, host::make_hello(token, 3)), std::pair(std::string(), false));
  }
}

TEST_F(GreetingAtADoor, WhatWasOverheardIsOfNoUseAgain) {
  const fuzz::Stranger peer(there().port);
  const std::string frame = frame_of(hello_, say(peer, hello_).first);
  EXPECT_TRUE(say(peer, frame).second);
  is_greeted_ = false;
  const fuzz::Stranger later(there().port);
  EXPECT_EQ(say(later, hello_).first.size(), host::kWelcomeSize);
  EXPECT_EQ(say(later, frame), std::pair(std::string(), false));
}

TEST_F(GreetingAtADoor, AFrameThatWasChangedOnTheWayIsNotHeard) {
  const fuzz::Stranger peer(there().port);
  std::string frame = frame_of(hello_, say(peer, hello_).first);
  frame.back() = static_cast<char>(frame.back() ^ 1);
  EXPECT_EQ(say(peer, frame), std::pair(std::string(), false));
}

/// What listens there answers a hello so, and then nothing.
std::string fault_of_call(const std::function<std::string(const std::string& hello)>& answer) {
  const auto listeners = listen_at({"127.0.0.1", 0});
  const Endpoint there{"127.0.0.1", host::port_of(listeners.front())};
  auto call = std::async(std::launch::async, [&]() -> std::string {
    try {
      call_at(there, "door", 3, seconds(60), kToken);
      return "it is believed";
    } catch (const NotOfThisRun&) {
      return "";
    }
  });
  pollfd waited{listeners.front().get(), POLLIN, 0};
  EXPECT_EQ(poll(&waited, 1, 60'000), 1);
  const host::Descriptor peer(accept(listeners.front().get(), nullptr, nullptr));
  std::string hello(host::kHelloSize, '\0');
  EXPECT_EQ(recv(peer.get(), hello.data(), hello.size(), MSG_WAITALL),
            static_cast<ssize_t>(host::kHelloSize));
  const std::string said = answer(hello);
  EXPECT_EQ(send(peer.get(), said.data(), said.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(said.size()));
  return call.get();
}

TEST(Greeting, AHostWithoutTheTokenIsNotBelieved) {
  const std::string token = kToken.for_door("door");
  EXPECT_EQ(fault_of_call([](const std::string& hello) {
              return host::make_welcome(kOther.for_door("door"), hello);
            }),
            "");
  EXPECT_EQ(fault_of_call([&](const std::string& /*hello*/) {
              return host::make_welcome(token, host::make_hello(token, 3));
            }),
            "")
      << "the welcome was overheard";
  EXPECT_EQ(fault_of_call([&](const std::string& hello) {
              return host::make_welcome(token, hello) + std::string(host::kEmptyFrameSize, '\0');
            }),
            "")
      << "the frame after it is not proven";
}

TEST(FrontDoor, LetsInWhoKnowsTheTokenThroughACrowd) {
  FrontDoor door({"127.0.0.1", 0}, "door", 1, kToken);
  const Endpoint there{"127.0.0.1", door.port()};
  std::vector<host::Descriptor> crowd;
  for (int i = 0; i < 400; ++i) {
    crowd.push_back(connect_within(there, seconds(10)));
    const std::string_view said = i % 3 == 0 ? "hello 2 1 9 9 stranger\n" : "";
    send(crowd.back().get(), said.data(), said.size(), MSG_NOSIGNAL);
  }
  auto call = std::async(std::launch::async,
                         [&] { return call_at(there, "door", 7, seconds(60), kToken); });
  auto callers = take_within(door, seconds(60), [] { return false; });
  ASSERT_EQ(callers.size(), 1U);
  EXPECT_EQ(callers.front().place, 7);
  say(callers.front(), "");
  Call made = call.get();
  // What follows is proven, too.
  say(callers.front(), "come in");
  std::string bytes(host::kEmptyFrameSize + 7, '\0');
  pollfd readable{made.socket.get(), POLLIN, 0};
  ASSERT_EQ(poll(&readable, 1, 60'000), 1);
  ASSERT_EQ(recv(made.socket.get(), bytes.data(), bytes.size(), MSG_WAITALL),
            static_cast<ssize_t>(bytes.size()));
  made.channel.add(bytes);
  EXPECT_EQ(made.channel.next(), "come in");
  for (const host::Descriptor& each : crowd) {
    char byte = 0;
    EXPECT_LE(recv(each.get(), &byte, 1, MSG_DONTWAIT), 0);
  }
}

TEST(FrontDoor, LetsNobodyInWhoHasAnotherToken) {
  FrontDoor door({"127.0.0.1", 0}, "door", 1, kToken);
  auto call = std::async(std::launch::async, [&] {
    return call_at({"127.0.0.1", door.port()}, "door", 1, seconds(60), kOther);
  });
  const auto is_over = [&] { return call.wait_for(seconds(0)) == std::future_status::ready; };
  EXPECT_TRUE(take_within(door, seconds(60), is_over).empty());
  EXPECT_THROW(call.get(), NotOfThisRun);
}

}  // namespace
}  // namespace dtool::trainer
