// SPDX-License-Identifier: MIT
// The rows of `dtool status` fit the room there is: columns go, lines are cut, like rows are
// folded.
#include "cli/watch/status_table.h"

#include <gtest/gtest.h>

#include "killfiles/killfile.h"

namespace dtool::cli {
namespace {

MachineStatus running(int id) {
  MachineStatus status;
  status.id = id;
  status.host.name = "h" + std::to_string(id + 1);
  status.state = MachineState::running;
  status.pid = 4000 + id;
  status.up_s = 65;
  status.processes = 4;
  status.cpu_percent = 90 + id;
  status.memory_bytes = 300LL << 20;
  status.last_line = "epoch 3  step 1200  loss 0.1234  lr 0.001  samples/s 45678  eta 12:34";
  return status;
}

MachineStatus exited(int id, int code) {
  MachineStatus status = running(id);
  status.state = MachineState::exited;
  status.exit_code = code;
  status.up_s.reset();
  return status;
}

std::vector<MachineStatus> many(int count) {
  std::vector<MachineStatus> machines;
  for (int i = 0; i < count; ++i) machines.push_back(running(i));
  return machines;
}

std::size_t width(const std::string& line) {
  std::size_t count = 0;
  for (const char each : line) count += (static_cast<unsigned char>(each) & 0xc0) != 0x80;
  return count;
}

TEST(Headlines, SayForHowLongARunThatHangsIsSilentAndWhichRanksAreLonger) {
  std::vector<MachineStatus> machines = many(2);
  const auto lines = [&machines] {
    return headlines(Console(), killfiles::Killfile{}, machines, 0);
  };
  machines[0].output_s_ago = 540;
  machines[1].output_s_ago = 720;
  machines[0].silent_s = {{0, 540}, {1, 545}};
  machines[1].silent_s = {{2, 720}, {3, 900}};
  EXPECT_EQ(lines().back(), "last output 9m 00s ago; longer: rank 3 (15m 00s), rank 2 (12m 00s)");
  machines[0].output_s_ago = 59;
  EXPECT_EQ(lines().size(), 1U) << "one of them goes on";
}

TEST(StatusTable, ShowsEverythingWhereThereIsRoom) {
  const auto lines = table(Console(), many(2), {200, 60});
  ASSERT_EQ(lines.size(), 3U);
  for (const char* word : {"MACHINE", "HOST", "STATE", "PID", "UP", "PROCS", "CPU", "MEMORY"})
    EXPECT_NE(lines[0].find(word), std::string::npos) << word;
  EXPECT_EQ(lines[0].find("GPU"), std::string::npos);
  for (const char* word : {"h2", "running", "4001", "1m 05s", "91%", "300 MiB", "eta 12:34"})
    EXPECT_NE(lines[2].find(word), std::string::npos) << word;
}

TEST(StatusTable, NoLineIsWiderThanTheRoomHoweverNarrow) {
  for (std::size_t columns = 1; columns < 160; ++columns) {
    for (const std::string& line : table(Console(), many(3), {columns, 24}))
      EXPECT_LE(width(line), columns) << line;
  }
  const auto lines = table(Console(), many(1), {80, 24});
  EXPECT_EQ(lines[0].find("PID"), std::string::npos);
  EXPECT_NE(lines[1].find("91%") == std::string::npos && lines[1].find("90%") == std::string::npos,
            true);
  EXPECT_NE(lines[1].find("…"), std::string::npos);
}

TEST(StatusTable, MachinesOfOneStateShareARowWhereTheRoomIsLow) {
  auto machines = many(64);
  machines[7] = exited(7, 3);
  const auto lines = table(Console(), machines, {120, 20});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_NE(lines[1].find("exited 3"), std::string::npos);
  EXPECT_NE(lines[2].find("0-6,8-63"), std::string::npos) << lines[2];
  EXPECT_NE(lines[2].find("h[1-7,9-64]"), std::string::npos) << lines[2];
  EXPECT_NE(lines[2].find("90%-153%"), std::string::npos) << lines[2];
}

TEST(StatusTable, TheOddOnesStandByThemselves) {
  auto machines = many(1000);
  machines[7] = exited(7, 3);
  machines[900] = exited(900, 3);
  for (int i = 100; i < 105; ++i) machines[static_cast<std::size_t>(i)] = exited(i, 4);
  const auto lines = table(Console(), machines, {0, kReadableRows});
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_TRUE(lines[1].starts_with("7 ")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("900 ")) << lines[2];
  EXPECT_TRUE(lines[3].starts_with("100-104 ")) << lines[3];
  EXPECT_TRUE(lines[4].starts_with("0-6,8-99,105-899,901-999 ")) << lines[4];
  EXPECT_EQ(table(Console(), machines, {}).size(), 1001U);
}

TEST(StatusTable, WhatDoesNotFitEvenFoldedIsCounted) {
  std::vector<MachineStatus> machines;
  for (int i = 0; i < 30; ++i) machines.push_back(exited(i, i));
  const auto lines = table(Console(), machines, {80, 10});
  ASSERT_EQ(lines.size(), 10U);
  EXPECT_EQ(lines.back(), "… and 22 more rows");
}

TEST(StatusTable, TheSummaryCountsEachState) {
  EXPECT_EQ(summary(many(1)), "running on 1 of 1 machine");
  auto machines = many(4);
  machines[1] = exited(1, 3);
  machines[2].state = MachineState::unreachable;
  EXPECT_EQ(summary(machines), "running on 2 of 4 machines, 1 exited 3, 1 unreachable");
  EXPECT_EQ(summary({exited(0, 0), exited(1, 0)}), "ended on 2 machines");
}

TEST(StatusTable, TheSummaryOfAFailedRunBeginsWithTheFailure) {
  std::vector<MachineStatus> machines = {exited(0, 0), exited(1, 0), exited(2, 3)};
  machines[1].state = MachineState::stopped;
  EXPECT_EQ(summary(machines), "failed: 1 of 3 machines exited 3, 1 stopped, 1 ended");
}

}  // namespace
}  // namespace dtool::cli
