// SPDX-License-Identifier: MIT
// Reports and decisions as they cross.
#include "ssh/host/session/report.h"

#include <gtest/gtest.h>

#include "ssh/host/process_table.h"
#include "ssh/wire/message.h"

namespace dtool::host {
namespace {

/// As another dtool-host might send them: what this one never does.
struct OddReport {
  std::int64_t attempt = 0;
  std::uint8_t standing = 0;
  std::int64_t code = 0;
  std::string text;
  std::optional<std::int64_t> rank;

  void fields(auto visit) { visit(attempt, standing, code, text, rank); }
};

TEST(Report, ArrivesAsItWasSent) {
  for (int standing = 0; standing <= static_cast<int>(Standing::gone); ++standing) {
    const Report report{3, static_cast<Standing>(standing), 137, "it was killed"};
    EXPECT_EQ(parse_report(to_bytes(report)), report);
  }
  const Report with_rank{3, Standing::failed, 1, "it was killed", 7};
  EXPECT_EQ(parse_report(to_bytes(with_rank)), with_rank);
  const Answer none = parse_answer(to_bytes(Answer{5, {}}), 3);
  EXPECT_EQ(none.taken, 5U);
  EXPECT_FALSE(none.decision);
  const Decision run{2, Verb::run, {0, 2}, {}};
  EXPECT_EQ(parse_answer(to_bytes(Answer{1, run}), 3).decision, run);
  const Decision end{2, Verb::end, {}, "why"};
  EXPECT_EQ(parse_answer(to_bytes(Answer{1, end}), 3).decision, end);
  for (const CausePlace& place : {CausePlace{2}, CausePlace{2, 7}}) {
    const Decision placed{2, Verb::end, {}, "why", place};
    EXPECT_EQ(parse_answer(to_bytes(Answer{1, placed}), 3).decision, placed);
  }
}

TEST(Report, WhatIsOutOfRangeIsRefused) {
  EXPECT_THROW(parse_report(to_bytes(Report{-1})), BadMessage);
  EXPECT_THROW(parse_report(to_bytes(Report{10'000})), BadMessage);
  EXPECT_THROW(parse_report(to_bytes(Report{0, static_cast<Standing>(8)})), BadMessage);
  EXPECT_THROW(parse_report(to_bytes(Report{0, Standing::failed, 256})), BadMessage);
  EXPECT_THROW(parse_report(to_bytes(Report{0, Standing::failed, 1, "", -1})), BadMessage);
  EXPECT_THROW(parse_report(""), BadMessage);
  EXPECT_THROW(parse_report(to_bytes(Report{}) + "x"), BadMessage);
  const auto answer = [](const Decision& decision) { return to_bytes(Answer{1, decision}); };
  EXPECT_THROW(parse_answer(answer({0, Verb::run, {3}, {}}), 3), BadMessage);
  EXPECT_THROW(parse_answer(answer({0, Verb::run, {-1}, {}}), 3), BadMessage);
  EXPECT_THROW(parse_answer(answer({0, Verb::end, {}, "", CausePlace{3}}), 3), BadMessage);
  EXPECT_THROW(parse_answer(answer({0, Verb::end, {}, "", CausePlace{2, -1}}), 3), BadMessage);
  EXPECT_THROW(parse_answer(answer({0, static_cast<Verb>(5), {}, {}}), 3), BadMessage);
}

TEST(Report, NumbersReachTheirLimits) {
  for (const Report& report :
       {Report{}, Report{9999, Standing::failed, 255, std::string(1500, '~'), 9'999'999},
        Report{0, Standing::failed, 1, " ", 0}}) {
    EXPECT_EQ(parse_report(to_bytes(report)), report);
  }
  EXPECT_THROW(parse_report(to_bytes(Report{0, Standing::failed, 1, "", 10'000'000})), BadMessage);
  EXPECT_THROW(parse_report(encode(OddReport{0, 0, 0, std::string(1501, 'x'), {}})), BadMessage);
  EXPECT_EQ(in_ascii(" ~"), " ~");
}

TEST(Report, ItsTimeIsInMilliseconds) {
  const auto milliseconds = [] { return static_cast<Time::rep>(seconds_since_boot() * 1000); };
  const auto before = milliseconds();
  const Time now = time_since_boot();
  EXPECT_LE(before, now.count());
  EXPECT_LE(now.count(), milliseconds());
}

TEST(Report, ItsTextIsPrintableAndBounded) {
  EXPECT_EQ(in_ascii("caf\xc3\xa9\x1b[2J\n"), "caf???[2J?");
  EXPECT_EQ(in_ascii(std::string(3000, 'x')).size(), 1500U);
  const Report long_one{0, Standing::failed, 1, std::string(3000, 'x')};
  EXPECT_LE(to_bytes(long_one).size(), kLongestReport);
  std::string bytes = to_bytes(Report{0, Standing::failed, 1, "text"});
  bytes[bytes.find("text")] = '\x1b';
  EXPECT_THROW(parse_report(bytes), BadMessage);
}

TEST(Report, DecisionsOnManyMachinesAreWithinTheBound) {
  Decision run{1, Verb::run, {}, {}};
  for (int place = 0; place < 100'000; ++place) run.places.push_back(place);
  EXPECT_LE(to_bytes(Answer{1, run}).size(), kLongestAnswer);
}

}  // namespace
}  // namespace dtool::host
