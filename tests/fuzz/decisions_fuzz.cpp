// SPDX-License-Identifier: MIT
// What the machines of a run tell each other, with and without faults, to the functions that read
// and obey it: none of it is believed where it is not what it may be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <stdexcept>

#include "cli/scripts.h"
#include "killfiles/channel/channel.h"
#include "ssh/host/session/coordinator.h"
#include "ssh/host/session/report_port.h"
#include "ssh/host/session/supervision.h"
#include "ssh/wire/message.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/program.h"
#include "tests/fuzz/stranger.h"
#include "tests/unit/temporary_folder.h"

namespace dtool {
namespace {

using namespace host;
using namespace std::string_literals;

const std::vector<std::string> kDecisionTokens = {" ",
                                                  "  ",
                                                  "\t",
                                                  "\r",
                                                  "\0"s,
                                                  "*",
                                                  "?",
                                                  "~",
                                                  "0",
                                                  "1",
                                                  "2",
                                                  "-1",
                                                  "07",
                                                  "08",
                                                  "0x1",
                                                  "2#1",
                                                  "9999",
                                                  "10000",
                                                  "99999999999999999999",
                                                  "1e9",
                                                  "a",
                                                  "BASHPID",
                                                  "$(touch canary)",
                                                  "`touch canary`",
                                                  "a[$(touch canary)]",
                                                  "a[`touch canary`]",
                                                  "x[$(touch canary>&2)]=1",
                                                  "${a[$(touch canary)]}",
                                                  "$((a[$(touch canary)]))",
                                                  "; touch canary",
                                                  "\ntouch canary\n",
                                                  "\xff"s,
                                                  "\xc2\x9b",
                                                  "\x1b[2J",
                                                  "%s%n",
                                                  "'",
                                                  "\"",
                                                  "\\",
                                                  "run",
                                                  "gather",
                                                  "end",
                                                  "done",
                                                  "failed",
                                                  "running",
                                                  "ended",
                                                  "stopped",
                                                  "gone",
                                                  "left_out",
                                                  "decision ",
                                                  "report ",
                                                  "lost ",
                                                  std::string(2001, 'x'),
                                                  std::string(3000, '1')};

const std::string kToken(32, 'a');

class DecisionsFuzz : public testing::Test {
 protected:
  tests::TemporaryFolder folder_;
};

TEST_F(DecisionsFuzz, AReportIsExactlyThatOrRefused) {
  fuzz::Mutator mutator({to_bytes(Report{0, Standing::running}),
                         to_bytes(Report{1, Standing::failed, 137, "rank 3 was killed", 3}),
                         to_bytes(Report{9999, Standing::gone, 255, "alone"})},
                        kDecisionTokens);
  const auto tally = fuzz::feed<BadMessage>(mutator, 2000, [](const std::string& bytes) {
    EXPECT_EQ(to_bytes(parse_report(bytes)), bytes);
  });
  EXPECT_GT(tally.taken, 20);
}

TEST_F(DecisionsFuzz, ADecisionIsExactlyThatOrRefused) {
  constexpr int kPlaces = 4;
  fuzz::Mutator mutator(
      {to_bytes(Answer{1, Decision{1, Verb::run, {0, 1, 3}, {}}}),
       to_bytes(Answer{7, Decision{2, Verb::gather, {}, "it failed", CausePlace{1, 3}}}),
       to_bytes(Answer{7, std::nullopt})},
      kDecisionTokens);
  const auto tally = fuzz::feed<BadMessage>(mutator, 2000, [](const std::string& bytes) {
    const Answer answer = parse_answer(bytes, kPlaces);
    EXPECT_EQ(to_bytes(answer), bytes);
    if (!answer.decision) return;
    for (const int place : answer.decision->places) EXPECT_TRUE(place >= 0 && place < kPlaces);
  });
  EXPECT_GT(tally.taken, 20);
}

TEST_F(DecisionsFuzz, WhatASessionIsToldToDoIsExactlyThatOrRefused) {
  const Supervision settings{0,           "h0", 2,           2, std::chrono::seconds(60),
                             "127.0.0.1", 2950, {"h0", "h1"}};
  fuzz::Mutator mutator({to_text(settings)}, kDecisionTokens);
  const auto tally = fuzz::feed<std::runtime_error>(mutator, 2000, [](const std::string& text) {
    const Supervision parsed = parse_supervision(text);
    EXPECT_EQ(parse_supervision(to_text(parsed)), parsed);
  });
  EXPECT_GT(tally.taken, 20);
}

TEST_F(DecisionsFuzz, FramesAreTheOnesThatWereSentOrNone) {
  const std::string hello = make_hello(kToken, 1);
  const std::string welcome = make_welcome(kToken, hello);
  const std::vector<std::string> bodies = {"one", "", std::string(300, 'x')};
  for (int i = 0; i < fuzz::rounds(300); ++i) {
    Channel machine(kToken, hello, welcome, End::machine, 1000);
    Channel coordinator(kToken, hello, welcome, End::coordinator, 1000);
    std::string bytes;
    for (const std::string& body : bodies) bytes += machine.seal(body);
    coordinator.add(fuzz::Mutator({bytes}, kDecisionTokens).next());
    try {
      for (std::size_t at = 0; const auto body = coordinator.next(); ++at) {
        ASSERT_LT(at, bodies.size());
        EXPECT_EQ(*body, bodies[at]);
      }
    } catch (const BadMessage&) {
    }
  }
}

/// Any reports in any order, at any times.
TEST_F(DecisionsFuzz, TheCoordinatorDecidesWhatMachinesCanDo) {
  std::mt19937 random{fuzz::seed()};
  const auto below = [&random](int end) { return static_cast<int>(random() % unsigned(end)); };
  int decided = 0;
  for (int run = 0; run < fuzz::rounds(200); ++run) {
    const int restarts = below(4);
    Time now(1'000'000);
    Coordinator coordinator(
        {0, "h0", 4, restarts, std::chrono::seconds(60), "127.0.0.1", 1, {"h0", "h1", "h2", "h3"}},
        now);
    int attempt = 0;
    bool is_over = false;
    for (int i = 0; i < 300; ++i) {
      now += Time(below(3000));
      const Report report{std::max(0, attempt + below(3) - 1), static_cast<Standing>(below(6)),
                          below(256), below(2) == 0 ? "" : "text"};
      coordinator.take(below(6) - 1, report, now);
      const auto decision = coordinator.decide(now);
      if (!decision) continue;
      ++decided;
      EXPECT_FALSE(is_over);
      EXPECT_LE(decision->attempt, restarts);
      EXPECT_EQ(parse_answer(to_bytes(Answer{1, *decision}), 4).decision, *decision);
      if (decision->verb == Verb::run) ++attempt;
      EXPECT_EQ(decision->attempt, attempt);
      is_over = decision->verb == Verb::end || decision->verb == Verb::done;
    }
  }
  EXPECT_GT(decided, 200);
}

TEST_F(DecisionsFuzz, StrangersAtThePortAreHungUpOnWithoutAWord) {
  Watch watch;
  ReportPort port(0, 3, kToken, watch);
  sigset_t none;
  sigemptyset(&none);
  const std::string hello = make_hello(kToken, 1);
  fuzz::Mutator mutator({hello, hello + std::string(200, '\0'), "GET / HTTP/1.0\r\n\r\n"},
                        kDecisionTokens);
  for (int i = 0; i < fuzz::rounds(300); ++i) {
    const std::string words = mutator.next();
    const fuzz::Stranger stranger(port.port());
    ASSERT_TRUE(stranger.is_there());
    stranger.say(words);
    stranger.say_no_more();
    std::string heard;
    bool is_over = false;
    for (int tries = 0; tries < 500 && !is_over; ++tries) {
      for (const int each : watch.wait(Time(10), none))
        EXPECT_TRUE(port.take(each, Time(1000)).empty());
      heard += stranger.hear(is_over);
    }
    EXPECT_TRUE(is_over) << words;
    // An overheard hello is answered, and of no further use. The answer may be lost if more than
    // the hello was sent: the port hangs up with bytes unread, which resets the connection.
    if (words == hello) {
      EXPECT_EQ(heard.size(), kWelcomeSize);
    } else if (!words.starts_with(hello) || !heard.empty()) {
      EXPECT_EQ(heard.size(), words.starts_with(hello) ? kWelcomeSize : 0U);
    }
    EXPECT_EQ(port.count_guests() + port.count_machines(), 0U);
  }
}

/// What a script that is started with words from a decision makes of them.
TEST_F(DecisionsFuzz, NumbersOfRanksComeFromNumbersAlone) {
  // Else bash takes a line's end for a part of a character that has no end.
  std::string text = "LC_ALL=C\n";
  text.append("begin() (\n  set -- $1\n  place=1 processes_of=(1 2 3 4)\n")
      .append(cli::scripts::kNumbers_ssh)
      .append("\n)\nset -f\n")
      .append(
          "while IFS= read -r line; do begin \"$line\" 2>> said; echo $? >> codes; done < "
          "lines\n");
  folder_.write("numbers", std::string(cli::scripts::kWords).append(text));
  fuzz::Mutator mutator({"0", "1 0 1 2", "2 1 3", "17 0 1 2 3"}, kDecisionTokens);
  std::string lines;
  int count = 0;
  for (int i = 0; i < fuzz::rounds(100); ++i) {
    lines.append(mutator.next()).append("\n");
  }
  for (const char each : lines) count += each == '\n' ? 1 : 0;
  folder_.write("lines", lines);
  fuzz::Program program({"bash", "./numbers"}, folder_.path());
  EXPECT_EQ(program.end(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "canary"));
  const std::string codes = folder_.read("codes");
  EXPECT_EQ(static_cast<int>(std::count(codes.begin(), codes.end(), '\n')), count);
  EXPECT_EQ(codes.find_first_not_of("02\n"), std::string::npos);
  EXPECT_NE(codes.find('0'), std::string::npos);
  EXPECT_NE(codes.find('2'), std::string::npos);
  // All that is said is the one sentence.
  const std::string said = folder_.read("said");
  const std::string sentence = "dtool: the numbers of this process are not what they should be: ";
  for (std::size_t at = 0; at < said.size(); at = said.find('\n', at) + 1)
    EXPECT_TRUE(said.substr(at).starts_with(sentence)) << said.substr(at, 200);
}

}  // namespace
}  // namespace dtool
