// SPDX-License-Identifier: MIT
// What crosses between two sessions of a run: greeting and frames, and what strangers can do with
// them.
#include "killfiles/channel/channel.h"

#include <gtest/gtest.h>

#include "killfiles/channel/sha256.h"
#include "ssh/wire/message.h"

namespace dtool::host {
namespace {

const std::string kToken(32, 'a');
const std::string kOther(32, 'b');
constexpr std::size_t kLongest = 100;

struct Pair {
  std::string hello = make_hello(kToken, 7);
  std::string welcome = make_welcome(kToken, hello);
  Channel machine{kToken, hello, welcome, End::machine, kLongest};
  Channel coordinator{kToken, hello, welcome, End::coordinator, kLongest};
};

TEST(Channel, BothSidesProveThemselves) {
  const Pair pair;
  EXPECT_EQ(pair.hello.size(), kHelloSize);
  EXPECT_EQ(pair.welcome.size(), kWelcomeSize);
  EXPECT_EQ(read_hello(kToken, pair.hello), 7);
  EXPECT_TRUE(is_welcome(kToken, pair.hello, pair.welcome));
  EXPECT_EQ(read_hello(kOther, pair.hello), std::nullopt);
  EXPECT_FALSE(is_welcome(kOther, pair.hello, pair.welcome));
  // Of another greeting.
  EXPECT_FALSE(is_welcome(kToken, make_hello(kToken, 7), pair.welcome));
  // The other way round.
  EXPECT_FALSE(is_welcome(kToken, pair.hello, pair.hello.substr(0, kWelcomeSize)));
}

TEST(Channel, NoByteOfAGreetingMayDiffer) {
  const Pair pair;
  for (std::size_t i = 0; i < kHelloSize; ++i) {
    std::string hello = pair.hello;
    hello[i] = static_cast<char>(hello[i] ^ 1);
    EXPECT_EQ(read_hello(kToken, hello), std::nullopt) << i;
  }
  for (std::size_t i = 0; i < kWelcomeSize; ++i) {
    std::string welcome = pair.welcome;
    welcome[i] = static_cast<char>(welcome[i] ^ 1);
    EXPECT_FALSE(is_welcome(kToken, pair.hello, welcome)) << i;
  }
  EXPECT_EQ(read_hello(kToken, pair.hello + "x"), std::nullopt);
  EXPECT_EQ(read_hello(kToken, pair.hello.substr(1)), std::nullopt);
}

std::string proof(std::string_view key, const std::string& bytes) {
  return std::string(bytes_of(hmac_sha256(key, bytes)));
}

TEST(Channel, WhatCrossesIsAsOtherVersionsHaveIt) {
  Pair pair;
  EXPECT_EQ(pair.hello.substr(0, 16), "dtool 1\n" + number_bytes(7, 8));
  EXPECT_EQ(pair.hello.substr(32),
            proof(kToken, "hello of a machine\n" + pair.hello.substr(0, 32)));
  EXPECT_EQ(pair.welcome.substr(16),
            proof(kToken, "welcome of machine 0\n" + pair.welcome.substr(0, 16) + pair.hello));
  const std::string greeting = pair.hello + pair.welcome;
  const std::string up = proof(kToken, "frames to machine 0\n" + greeting);
  const std::string down = proof(kToken, "frames from machine 0\n" + greeting);
  for (const int number : {0, 1}) {
    const std::string said = number_bytes(static_cast<std::uint64_t>(number), 8) + "body";
    EXPECT_EQ(pair.machine.seal("body"), number_bytes(4, 4) + "body" + proof(up, said));
    EXPECT_EQ(pair.coordinator.seal("body"), number_bytes(4, 4) + "body" + proof(down, said));
  }
}

TEST(Channel, ThatAProofIsRightIsNotEnough) {
  const auto hello_of = [](const std::string& magic, std::uint64_t place) {
    const std::string said = magic + number_bytes(place, 8) + std::string(16, 'n');
    return said + proof(kToken, "hello of a machine\n" + said);
  };
  EXPECT_EQ(read_hello(kToken, hello_of("dtool 1\n", 0)), 0);
  EXPECT_EQ(read_hello(kToken, hello_of("dtool 1\n", 1'000'000)), 1'000'000);
  EXPECT_EQ(read_hello(kToken, hello_of("dtool 1\n", 1'000'001)), std::nullopt);
  EXPECT_EQ(read_hello(kToken, hello_of("dtool 2\n", 7)), std::nullopt);
}

TEST(Channel, AGreetingOfAnotherSizeIsNone) {
  const Pair pair;
  EXPECT_EQ(read_hello(kToken, ""), std::nullopt);
  EXPECT_FALSE(is_welcome(kToken, pair.hello, ""));
  EXPECT_FALSE(is_welcome(kToken, pair.hello, pair.welcome + "x"));
  EXPECT_FALSE(is_welcome(kToken, pair.hello, pair.welcome.substr(1)));
}

TEST(Channel, TheTokenNeverCrosses) {
  Pair pair;
  const std::string all = pair.hello + pair.welcome + pair.machine.seal("x");
  EXPECT_EQ(all.find(kToken.substr(0, 8)), all.npos);
}

TEST(Channel, FramesArriveInAnyPieces) {
  Pair pair;
  std::string sent;
  for (const char* body : {"one", "", "three"}) sent += pair.machine.seal(body);
  std::vector<std::string> got;
  for (const char each : sent) {
    pair.coordinator.add({&each, 1});
    while (auto body = pair.coordinator.next()) got.push_back(*body);
  }
  EXPECT_EQ(got, (std::vector<std::string>{"one", "", "three"}));
  pair.machine.add(pair.coordinator.seal("back"));
  EXPECT_EQ(pair.machine.next(), "back");
}

TEST(Channel, FramesArriveAllAtOnce) {
  Pair pair;
  const std::string longest(kLongest, 'x');
  std::string sent = pair.machine.seal("one");
  sent += pair.machine.seal(longest);
  sent += pair.machine.seal("three").substr(0, 10);
  pair.coordinator.add(sent);
  EXPECT_EQ(pair.coordinator.next(), "one");
  EXPECT_EQ(pair.coordinator.next(), longest);
  EXPECT_EQ(pair.coordinator.next(), std::nullopt);
}

TEST(Channel, AFrameThatWasChangedRepeatedLeftOutOrReflectedIsRefused) {
  const auto refuses = [](Channel& channel, const std::string& bytes) {
    channel.add(bytes);
    EXPECT_THROW(channel.next(), BadMessage);
  };
  Pair changed;
  std::string frame = changed.machine.seal("body");
  frame[5] = 'O';
  refuses(changed.coordinator, frame);

  Pair repeated;
  frame = repeated.machine.seal("body");
  repeated.coordinator.add(frame);
  EXPECT_TRUE(repeated.coordinator.next());
  refuses(repeated.coordinator, frame);

  Pair left_out;
  left_out.machine.seal("first");
  refuses(left_out.coordinator, left_out.machine.seal("second"));

  Pair reflected;
  refuses(reflected.machine, reflected.machine.seal("body"));

  Pair elsewhere;
  Pair other;
  refuses(other.coordinator, elsewhere.machine.seal("body"));
}

TEST(Channel, ABodyThatIsTooLongIsRefusedBeforeItHasCome) {
  Pair pair;
  const std::string frame = pair.machine.seal(std::string(kLongest + 1, 'x'));
  pair.coordinator.add(frame.substr(0, 4));
  EXPECT_THROW(pair.coordinator.next(), BadMessage);
}

TEST(Channel, WhatCannotBeAHelloIsKnownByItsFirstBytes) {
  EXPECT_TRUE(may_be_hello(""));
  EXPECT_TRUE(may_be_hello("dtool"));
  EXPECT_TRUE(may_be_hello(make_hello(kToken, 1)));
  for (const char* noise : {"GET / HTTP/1.0\r\n", "\n", "0", "dtoof"})
    EXPECT_FALSE(may_be_hello(noise)) << noise;
}

}  // namespace
}  // namespace dtool::host
