// SPDX-License-Identifier: MIT
// What comes to the ports of the trainer: from strangers, who say anything, and from processes of
// the run that have gone wrong. Strangers are told nothing, and neither of them keeps anybody else
// away.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/stranger.h"
#include "tests/trainer/store_client.h"
#include "trainer/launch/greeting.h"
#include "trainer/launch/network.h"

namespace dtool::trainer {
namespace {

using namespace std::string_literals;
using std::chrono::seconds;

const RunToken kToken("0123456789abcdef0123456789abcdef");
const RunToken kOther("0123456789abcdef0123456789abcdee");

const std::string kDoor = kToken.for_door("machines");

const std::vector<std::string> kTokens = {"\n",
                                          "\0"s,
                                          "\xff"s,
                                          "dtool 1\n",
                                          "\x01",
                                          "dtool 2\n",
                                          std::string(16, '\0'),
                                          "0123456789abcdef0123456789abcdef"};

TEST(GreetingFuzz, NoMessageThatWasSpoiltIsBelieved) {
  const std::string hello = host::make_hello(kDoor, 3);
  const std::string welcome = host::make_welcome(kDoor, hello);
  host::Channel caller(kDoor, hello, welcome, host::End::machine, 100);
  host::Channel door(kDoor, hello, welcome, host::End::coordinator, 100);
  const std::string here = caller.seal("");
  const std::string known = door.seal("");
  fuzz::Mutator mutator(
      {hello, welcome, here, known, host::make_hello(kOther.for_door("machines"), 3),
       host::make_hello(kToken.for_door("store"), 3)},
      kTokens);
  const auto hears = [](host::Channel channel, const std::string& bytes) {
    channel.add(bytes);
    try {
      return channel.next().has_value();
    } catch (const std::runtime_error&) {
      return false;
    }
  };
  int right = 0;
  for (int i = 0; i < fuzz::rounds(20'000); ++i) {
    const std::string bytes = mutator.next();
    if (host::read_hello(kDoor, bytes)) {
      EXPECT_EQ(bytes, hello);
      ++right;
    }
    if (host::is_welcome(kDoor, hello, bytes)) {
      EXPECT_EQ(bytes, welcome);
    }
    if (hears(door, bytes)) {
      EXPECT_TRUE(bytes.starts_with(here));
    }
    if (hears(caller, bytes)) {
      EXPECT_TRUE(bytes.starts_with(known));
    }
  }
  EXPECT_GT(right, 10);
}

TEST(GreetingFuzz, FramesAreTheSameWhereverTheirBytesAreCut) {
  const std::string hello = host::make_hello(kDoor, 3);
  const std::string welcome = host::make_welcome(kDoor, hello);
  constexpr std::size_t kLongest = 40;
  fuzz::Mutator bodies({"alive", "", "a longer body of a frame", std::string(41, 'x')}, kTokens);
  std::mt19937 random(fuzz::seed());
  for (int i = 0; i < fuzz::rounds(1'500); ++i) {
    host::Channel speaks(kDoor, hello, welcome, host::End::machine, kLongest);
    host::Channel hears(kDoor, hello, welcome, host::End::coordinator, kLongest);
    std::string bytes;
    std::vector<std::string> expected;
    bool is_too_long = false;
    for (int frame = 0; frame < 4; ++frame) {
      const std::string body = bodies.next();
      bytes += speaks.seal(body);
      is_too_long = is_too_long || body.size() > kLongest;
      if (!is_too_long) expected.push_back(body);
    }
    std::vector<std::string> heard;
    bool is_refused = false;
    for (std::size_t at = 0; at < bytes.size() && !is_refused;) {
      const std::size_t size = std::min<std::size_t>(1 + random() % 30, bytes.size() - at);
      hears.add(std::string_view(bytes).substr(at, size));
      at += size;
      try {
        while (auto body = hears.next()) heard.push_back(*body);
      } catch (const std::runtime_error&) {
        is_refused = true;
      }
    }
    EXPECT_EQ(is_refused, is_too_long);
    EXPECT_EQ(heard, expected);
  }
}

TEST(GreetingFuzz, ADoorTellsStrangersNothingAndLetsItsOwnIn) {
  FrontDoor door({"127.0.0.1", 0}, "machines", 1, kToken);
  const Endpoint there{"127.0.0.1", door.port()};
  const std::string first = host::make_hello(kDoor, 3);
  fuzz::Mutator mutator({first, first + std::string(host::kEmptyFrameSize, '\0'),
                         host::make_hello(kOther.for_door("machines"), 3), "GET / HTTP/1.0\r\n\r\n",
                         std::string(3000, 'a')},
                        kTokens);
  int answered = 0;
  for (int i = 0; i < fuzz::rounds(500); ++i) {
    const std::string text = mutator.next();
    const fuzz::Stranger stranger(there.port);
    stranger.say(text);
    std::string heard;
    EXPECT_TRUE(door.take().empty()) << text;
    bool is_over = false;
    heard += stranger.hear(is_over);
    stranger.say_no_more();
    while (!is_over) {
      door.watch().wait(std::chrono::milliseconds(10));
      EXPECT_TRUE(door.take().empty()) << text;
      heard += stranger.hear(is_over);
    }
    // Who has overheard the hello can have a welcome, and no more.
    if (!heard.empty()) {
      ++answered;
      EXPECT_TRUE(text.starts_with(first)) << text;
      EXPECT_EQ(heard.size(), host::kWelcomeSize);
    }
    if (i % 100 != 0) continue;
    auto call = std::async(std::launch::async,
                           [&] { return call_at(there, "machines", 1, seconds(60), kToken); });
    std::vector<host::Caller> callers;
    while (callers.empty() && call.wait_for(seconds(0)) != std::future_status::ready)
      callers = door.take();
    ASSERT_EQ(callers.size(), 1U) << text;
    say(callers.front(), "");
    EXPECT_TRUE(call.get().socket.is_open());
  }
  EXPECT_GT(answered, 10);
}

/// Answers up to one that begins so, that one too. Nothing: it was hung up on.
std::optional<std::vector<std::string>> hear_until(StoreClient& client,
                                                   const std::string& beginning) {
  std::vector<std::string> heard;
  for (;;) {
    heard.push_back(client.hear(seconds(60)));
    if (heard.back().starts_with(beginning)) return heard;
    if (heard.back() == "closed") return std::nullopt;
    if (heard.back() == "silent") {
      ADD_FAILURE() << "no answer: " << beginning;
      return std::nullopt;
    }
  }
}

void say_lines(StoreClient& client, std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = text.find('\n');
    client.say(std::string(text.substr(0, size)));
    text.remove_prefix(size == text.npos ? text.size() : size + 1);
  }
}

TEST(GreetingFuzz, AStoreServesTheOthersWhateverOneOfThemAsks) {
  fuzz::Mutator mutator(
      {"1 set x61 x00ff", "2 get x61", "3 add x62 2", "4 check x61 x62", "5 wait x61 x63",
       "6 swap x62 x32 x33", "7 delete x61", "8 count", "9 wait x71 x72 x73 x61",
       "10 set x71 x\n11 set x72 x30", "12 set x62 x39323233333732303336383534373735383037",
       "13 add x62 9223372036854775807", "14 add x62 -9223372036854775808"},
      {" ",
       "  ",
       "\n",
       "\r",
       "\0"s,
       "x",
       "x6",
       "x61",
       "x62",
       "x71",
       "x72",
       "xgg",
       "61",
       "-",
       "+",
       "9223372036854775807",
       "-9223372036854775808",
       "99999999999999999999",
       "set",
       "get",
       "wait",
       "add",
       "check",
       "swap",
       "delete",
       "count",
       "\xff"s,
       " get x71",
       "\n77 wait x71 x7"});
  std::unique_ptr<ReservedPort> port;
  std::unique_ptr<StoreServer> server;
  std::unique_ptr<StoreClient> honest;
  std::unique_ptr<StoreClient> other;
  std::string asked;
  int hung_up = 0;
  const int rounds = fuzz::rounds(300);
  for (int i = 0; i < rounds; ++i) {
    if (i % 300 == 0) {  // what it was told to keep is forgotten
      asked.clear();
      other.reset();
      honest.reset();
      server.reset();
      port = std::make_unique<ReservedPort>();
      const Endpoint there{"127.0.0.1", port->number()};
      server = std::make_unique<StoreServer>(there, 10);
      honest = std::make_unique<StoreClient>(there);
    }
    const Endpoint there{"127.0.0.1", port->number()};
    if (!other) other = std::make_unique<StoreClient>(there);
    const std::string text = mutator.next();
    asked += text + "\n";
    say_lines(*other, text + "\n0 check x");
    const auto heard = hear_until(*other, "0 ");
    if (!heard) {
      ++hung_up;
      other.reset();
    }
    // A name of its own, or one that the other may wait for.
    const std::string name = std::vector<std::string>{"x00112233", "x71", "x72"}[i % 3];
    say_lines(*honest, "1 set " + name + " x6f6b\n2 get " + name + "\n3 delete " + name);
    const auto answers = hear_until(*honest, "3 ");
    ASSERT_TRUE(answers) << "after:\n" << asked;
    EXPECT_EQ(*answers, (std::vector<std::string>{"1 done", "2 value x6f6b", "3 yes"})) << asked;
  }
  EXPECT_GT(hung_up, rounds / 10);
  EXPECT_LT(hung_up, rounds * 19 / 20);
}

}  // namespace
}  // namespace dtool::trainer
