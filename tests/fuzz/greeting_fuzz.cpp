// SPDX-License-Identifier: MIT
// What comes to the ports of the trainer: from strangers, who say anything, and from processes of
// the run that have gone wrong. Strangers are told nothing, and neither of them keeps anybody else
// away.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <future>
#include <memory>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/stranger.h"
#include "trainer/launch/front_door.h"
#include "trainer/launch/greeting.h"
#include "trainer/launch/network.h"
#include "trainer/ranks/store_server.h"

namespace dtool::trainer {
namespace {

using namespace std::string_literals;
using std::chrono::seconds;

const RunToken kToken("0123456789abcdef0123456789abcdef");
const RunToken kOther("0123456789abcdef0123456789abcdee");

const std::vector<std::string> kTokens = {" ",
                                          "  ",
                                          "\n",
                                          "\r\n",
                                          "\0"s,
                                          "\t",
                                          "known ",
                                          "here ",
                                          "x",
                                          "welcome ",
                                          "0",
                                          "-1",
                                          "\xff"s,
                                          "\xc2\x9b",
                                          "\x1b[2J",
                                          "99999999999999999999",
                                          "machines",
                                          "store",
                                          "dtool-trainer 3 ",
                                          "dtool-trainer 4 ",
                                          "0123456789abcdef0123456789abcdef"};

TEST(GreetingFuzz, NoLineThatWasSpoiltIsBelieved) {
  Greeting caller(kToken, "machines");
  Greeting host(kToken, "machines");
  const std::string first = caller.begin();
  const Greeting waiting = host;
  const std::string known = host.answer(first).value();
  const Greeting asking = caller;
  const std::string here = caller.reply(known, "1 2 1 red02").value();
  const std::string welcome = host.welcome("4711 red01");
  Greeting another(kOther, "machines");
  Greeting elsewhere(kToken, "store");
  fuzz::Mutator mutator({first, known, here, welcome, another.begin(), elsewhere.begin()}, kTokens);
  int right = 0;
  for (int i = 0; i < fuzz::rounds(20'000); ++i) {
    const std::string line = mutator.next();
    Greeting listens = waiting;
    Greeting speaks = asking;
    if (listens.answer(line)) {
      EXPECT_EQ(line, first);
      ++right;
    }
    if (speaks.reply(line, "words")) {
      EXPECT_EQ(line, known);
    }
    if (host.hear(line)) {
      EXPECT_EQ(line, here);
    }
    if (caller.enter(line)) {
      EXPECT_EQ(line, welcome);
    }
  }
  EXPECT_GT(right, 10);
}

TEST(GreetingFuzz, LinesAreTheSameWhereverTheirBytesAreCut) {
  fuzz::Mutator mutator({"alive\nfinished\nwell\n", "a\n\nb\n", "without an end", "\n\n\n"},
                        {"\n", "\r\n", "\0"s, "0123456789", "0123456789012345678901234567890123"});
  constexpr std::size_t kLongest = 40;
  std::mt19937 random(fuzz::seed());
  for (int i = 0; i < fuzz::rounds(1'500); ++i) {
    const std::string text = mutator.next();
    std::vector<std::string> expected;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
      if (end - begin > kLongest) break;
      expected.push_back(text.substr(begin, end - begin));
    }
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    LineSocket reader(ends[0], kLongest);
    std::vector<std::string> lines;
    const auto read = [&] {
      for (std::string& line : reader.receive()) lines.push_back(std::move(line));
    };
    for (std::size_t at = 0; at < text.size() && !reader.has_ended();) {
      const std::size_t size = std::min<std::size_t>(1 + random() % 30, text.size() - at);
      send(ends[1], text.data() + at, size, MSG_NOSIGNAL);
      at += size;
      read();
    }
    close(ends[1]);
    read();
    EXPECT_TRUE(reader.has_ended());
    EXPECT_EQ(lines, expected) << text;
  }
}

TEST(GreetingFuzz, ADoorTellsStrangersNothingAndLetsItsOwnIn) {
  FrontDoor door({"127.0.0.1", 0}, "machines", 1, kToken);
  const Endpoint there{"127.0.0.1", door.port()};
  Greeting another(kOther, "machines");
  Greeting own(kToken, "machines");
  const std::string first = own.begin();
  fuzz::Mutator mutator({first + "\n", first + "\nhere " + std::string(64, '0') + " 1 2 1 red02\n",
                         another.begin() + "\n", "GET / HTTP/1.0\r\n\r\n", std::string(3000, 'a')},
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
      pollfd waited{door.descriptor(), POLLIN, 0};
      poll(&waited, 1, 10);
      EXPECT_TRUE(door.take().empty()) << text;
      heard += stranger.hear(is_over);
    }
    // Who has overheard the first line can have the second one, and no more.
    if (!heard.empty()) {
      ++answered;
      EXPECT_TRUE(text.starts_with(first + "\n")) << text;
      EXPECT_TRUE(heard.starts_with("known ") && heard.find('\n') == heard.size() - 1) << heard;
    }
    if (i % 100 != 0) continue;
    auto call = std::async(std::launch::async,
                           [&] { return call_at(there, "machines", "one", seconds(60), kToken); });
    std::vector<Guest> guests;
    while (guests.empty() && call.wait_for(seconds(0)) != std::future_status::ready) {
      guests = door.take();
    }
    ASSERT_EQ(guests.size(), 1U) << text;
    const auto socket = guests.front().welcome("in");
    const LineSocket end(call.get().descriptor);
  }
  EXPECT_GT(answered, 10);
}

/// One of the run, which has been let in, and says what it likes then.
class Insider {
 public:
  Insider(const Endpoint& endpoint, const char* door, const std::string& words)
      : socket_(call_at(endpoint, door, words, seconds(60)).descriptor, kLongestRequest) {}

  void say(std::string_view line) { socket_.send(line); }

  /// Lines up to one that begins so, that one too. Nothing: it was hung up on.
  std::optional<std::vector<std::string>> hear_until(const std::string& beginning) {
    std::vector<std::string> heard;
    for (;;) {
      for (std::string& line : socket_.receive()) heard.push_back(std::move(line));
      if (!heard.empty() && heard.back().starts_with(beginning)) return heard;
      if (socket_.has_ended()) return std::nullopt;
      pollfd ready{socket_.descriptor(), POLLIN, 0};
      if (poll(&ready, 1, 60'000) != 1) {
        ADD_FAILURE() << "no answer: " << beginning;
        return std::nullopt;
      }
    }
  }

 private:
  LineSocket socket_;
};

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
  std::unique_ptr<Insider> honest;
  std::unique_ptr<Insider> other;
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
      honest = std::make_unique<Insider>(there, kStoreDoor, "client");
    }
    const Endpoint there{"127.0.0.1", port->number()};
    if (!other) other = std::make_unique<Insider>(there, kStoreDoor, "client");
    const std::string text = mutator.next();
    asked += text + "\n";
    other->say(text + "\n0 check x");
    const auto heard = other->hear_until("0 ");
    if (!heard) {
      ++hung_up;
      other.reset();
    }
    // A name of its own, or one that the other may wait for.
    const std::string name = std::vector<std::string>{"x00112233", "x71", "x72"}[i % 3];
    honest->say("1 set " + name + " x6f6b\n2 get " + name + "\n3 delete " + name);
    const auto answers = honest->hear_until("3 ");
    ASSERT_TRUE(answers) << "after:\n" << asked;
    EXPECT_EQ(*answers, (std::vector<std::string>{"1 done", "2 value x6f6b", "3 yes"})) << asked;
  }
  EXPECT_GT(hung_up, rounds / 10);
  EXPECT_LT(hung_up, rounds * 19 / 20);
}

}  // namespace
}  // namespace dtool::trainer
