// SPDX-License-Identifier: MIT
// Logs of several machines become one text: whole lines, none lost, like ones folded.
#include "cli/logs/log_lines.h"

#include <gtest/gtest.h>

#include <random>

namespace dtool::cli {
namespace {

class Shown : public LogLines {
 public:
  using LogLines::LogLines;
  std::string text;

 private:
  void show(const std::vector<std::size_t>& machines, std::string_view line) override {
    for (const std::size_t machine : machines) text += std::to_string(machine);
    text.append(" ").append(line);
  }
};

TEST(LogLines, ALineIsShownWhenItIsWholeAndTheLastOneAtTheEnd) {
  Shown lines(2, Fold::no);
  lines.add(0, "on");
  lines.add(1, "two\n");
  lines.add(0, "e\r\n\nla");
  EXPECT_EQ(lines.text, "1 two\n0 one\r\n0 \n");
  lines.add(0, "st");
  lines.end(0);
  lines.end(0);
  EXPECT_EQ(lines.text, "1 two\n0 one\r\n0 \n0 last\n");
}

TEST(LogLines, ALineThatIsRedrawnIsShownAtEachFifthCall) {
  Shown lines(2, Fold::no);
  const auto call = [&lines](int times) {
    for (int i = 0; i < times; ++i) lines.show_redrawn(0);
  };
  lines.add(0, "no bar");
  call(9);
  EXPECT_EQ(lines.text, "");
  lines.add(0, "\r10 %\r11 %\r");
  call(4);
  EXPECT_EQ(lines.text, "");
  call(1);
  EXPECT_EQ(lines.text, "0 11 %\n");
  call(9);
  EXPECT_EQ(lines.text, "0 11 %\n") << "nothing new has come";
  lines.add(0, "\r12 %\r13 %");
  call(5);
  EXPECT_EQ(lines.text, "0 11 %\n0 13 %\n");
}

TEST(LogLines, BytesOfAnyKindPass) {
  Shown lines(1, Fold::no);
  const std::string bytes("\0\xff\x1b\n", 4);
  lines.add(0, bytes);
  EXPECT_EQ(lines.text, "0 " + bytes);
}

TEST(LogLines, AnEndlessLineIsShownInPieces) {
  Shown lines(1, Fold::no);
  const std::string part(1 << 19, 'x');
  for (int i = 0; i < 5; ++i) lines.add(0, part);
  EXPECT_EQ(lines.text, "0 " + part + part + "\n0 " + part + part + "\n");
}

TEST(LogLines, WhatAllSayIsShownOnce) {
  Shown lines(3, Fold::yes);
  lines.add(0, "a\n");
  lines.add(1, "a\n");
  EXPECT_EQ(lines.text, "");
  lines.add(2, "a\n");
  EXPECT_EQ(lines.text, "012 a\n");
}

TEST(LogLines, OwnLinesStandBeforeTheLikeOneThatFollowsThem) {
  Shown lines(2, Fold::yes);
  lines.add(0, "a\nrank 0\nz\n");
  lines.add(1, "a\nrank 1\nz\nend\n");
  lines.end(0);
  lines.end(1);
  EXPECT_EQ(lines.text, "01 a\n0 rank 0\n1 rank 1\n01 z\n1 end\n");
}

TEST(LogLines, TheNearestLikeLineIsTakenFirst) {
  Shown lines(2, Fold::yes);
  lines.add(0, "\nx\ny\n\n");
  lines.add(1, "x\ny\n\n");
  EXPECT_EQ(lines.text, "0 \n01 x\n01 y\n01 \n");
}

TEST(LogLines, WhatAMachineThatHasEndedDoesNotSayIsShownAtOnce) {
  Shown lines(2, Fold::yes);
  lines.add(0, "a\n");
  lines.end(0);
  lines.add(1, "b\n");
  EXPECT_EQ(lines.text, "1 b\n");
  lines.add(1, "a\nc\n");
  EXPECT_EQ(lines.text, "1 b\n01 a\n1 c\n");
}

TEST(LogLines, WhatAllButSomeSayIsShownOnceForThoseWhoDo) {
  Shown lines(4, Fold::yes);
  for (const std::size_t machine : {0, 1, 3}) lines.add(machine, "step\nover\n");
  lines.add(2, "boom\nover\n");
  EXPECT_EQ(lines.text, "013 step\n2 boom\n0123 over\n");
}

TEST(LogLines, ALineThatAMachineLacksWaitsForTheOtherMachines) {
  Shown lines(4, Fold::yes);
  lines.add(2, "boom\n");
  lines.end(2);
  for (const std::size_t machine : {0, 3}) {
    lines.add(machine, "step\n");
    lines.end(machine);
  }
  EXPECT_EQ(lines.text, "");
  lines.add(1, "mine\nstep\n");
  lines.end(1);
  EXPECT_EQ(lines.text, "1 mine\n013 step\n2 boom\n");
}

TEST(LogLines, TheLastLinesOfAMachineThatHasEndedFallDueWhileOthersGoOn) {
  Shown lines(3, Fold::yes);
  lines.add(0, "last\n");
  lines.end(0);
  lines.show_due(1);
  lines.show_due(2);
  EXPECT_EQ(lines.text, "") << "the others have had no time to say it, too";
  lines.add(1, "more\n");
  lines.show_due(1);
  lines.show_due(2);
  EXPECT_EQ(lines.text, "0 last\n");
}

TEST(LogLines, AMachineThatFailsIsNotWaitedFor) {
  Shown lines(3, Fold::yes);
  lines.add(0, "a\n");
  lines.add(1, "a\n");
  lines.add(2, "half");
  lines.leave_out(2);
  EXPECT_EQ(lines.text, "2 half\n01 a\n");
}

TEST(LogLines, LinesThatWaitAreBounded) {
  Shown lines(2, Fold::yes, 1000);
  for (int i = 0; i < 100; ++i) lines.add(0, std::to_string(i) + "\n");
  EXPECT_TRUE(lines.text.starts_with("0 0\n0 1\n")) << lines.text;
  EXPECT_FALSE(lines.text.ends_with("0 99\n"));
  lines.flush();
  EXPECT_TRUE(lines.text.ends_with("0 98\n0 99\n")) << lines.text;
}

TEST(LogLines, FoldingLosesAndReordersNoLineOfAMachine) {
  std::mt19937 random(7);
  std::vector<std::string> said(3), shown(3);
  class Sorted : public LogLines {
   public:
    Sorted(std::vector<std::string>& into) : LogLines(3, Fold::yes, 3000), into_(into) {}

   private:
    void show(const std::vector<std::size_t>& machines, std::string_view line) override {
      for (const std::size_t machine : machines) into_[machine] += line;
    }
    std::vector<std::string>& into_;
  } lines(shown);
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t machine = random() % 3;
    const std::string bytes = std::to_string(random() % 12) + (random() % 3 == 0 ? "" : "\n");
    said[machine] += bytes;
    lines.add(machine, bytes);
  }
  for (std::size_t machine = 0; machine < 3; ++machine) {
    lines.end(machine);
    if (!said[machine].ends_with('\n')) said[machine] += '\n';
  }
  lines.flush();
  EXPECT_EQ(shown, said);
}

}  // namespace
}  // namespace dtool::cli
