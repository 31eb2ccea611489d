// SPDX-License-Identifier: MIT
// The rows of `dtool list` fit the terminal: what can be missed goes first.
#include "cli/watch/list_table.h"

#include <gtest/gtest.h>

#include "cli/terminal_text.h"

namespace dtool::cli {
namespace {

killfiles::Killfile recorded(const std::string& id, int machines) {
  killfiles::Killfile killfile;
  killfile.run_id = id;
  killfile.created = "2026-11-21T03:45:12Z";
  for (int i = 0; i < machines; ++i) {
    killfiles::Machine machine;
    machine.id = i;
    machine.host = "gpu" + std::to_string(i + 10);
    killfile.machines.push_back(machine);
  }
  return killfile;
}

class ListTableTest : public testing::Test {
 protected:
  ListTableTest() {
    runs_[1].chain = {"mnist_20261121-034512-111111", "mnist_20261121-034513-222222"};
    MachineStatus running;
    running.state = MachineState::running;
    states_ = {{8, running}, {}};
  }
  std::vector<std::string> lines(std::size_t columns) const {
    auto lines = list_table(Console(), runs_, states_, columns);
    for (const std::string& each : lines)
      EXPECT_TRUE(columns == 0 || length(each) <= columns) << each;
    return lines;
  }

  std::vector<killfiles::Killfile> runs_ = {recorded("digits_20261121-034512-3fa91c", 8),
                                            recorded("mnist_20261121-034512-3fa91c", 2)};
  std::vector<std::vector<MachineStatus>> states_;
};

TEST_F(ListTableTest, AFileGetsEverything) {
  const auto all = lines(0);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0],
            "RUN                            STARTED               MACHINES  STATE    HOSTS");
  EXPECT_EQ(all[1],
            "digits_20261121-034512-3fa91c  2026-11-21T03:45:12Z         8  running  gpu[10-17]");
  EXPECT_EQ(all[2],
            "mnist_20261121-034512-3fa91c   2026-11-21T03:45:12Z         2  unknown  gpu[10-11]"
            "  resumes mnist_20261121-034513-222222");
}

TEST_F(ListTableTest, ATerminalOf80ColumnsGetsRowsOfOneLine) {
  const auto all = lines(80);
  EXPECT_EQ(all[0], "RUN                            STATE    HOSTS");
  EXPECT_EQ(all[1], "digits_20261121-034512-3fa91c  running  gpu[10-17]");
  EXPECT_EQ(all[2],
            "mnist_20261121-034512-3fa91c   unknown  gpu[10-11]  resumes mnist_20261121-0345…");
}

TEST_F(ListTableTest, TheNumberOfMachinesGoesBeforeTheTime) {
  EXPECT_EQ(lines(95)[1],
            "digits_20261121-034512-3fa91c  2026-11-21T03:45:12Z  running  gpu[10-17]");
}

TEST_F(ListTableTest, WithoutStatesThereIsNoColumnOfThem) {
  states_.clear();
  EXPECT_EQ(lines(0)[1],
            "digits_20261121-034512-3fa91c  2026-11-21T03:45:12Z         8  gpu[10-17]");
}

TEST_F(ListTableTest, AVeryNarrowTerminalStillGetsTheIds) {
  const auto all = list_table(Console(), runs_, states_, 20);
  EXPECT_EQ(all[1], "digits_20261121-034512-3fa91c  running  ");
}

}  // namespace
}  // namespace dtool::cli
