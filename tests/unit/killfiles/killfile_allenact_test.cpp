// SPDX-License-Identifier: MIT
// AllenAct's killfiles.
#include <gtest/gtest.h>

#include "killfiles/killfile.h"
#include "tests/unit/fault.h"

namespace dtool::killfiles {
namespace {

const std::string kText =
    "10.0.0.1 allenact_2021-03-01_10-11-12_AB12_X1Y2_machine0\n"
    "ubuntu@gpu02 allenact_2021-03-01_10-11-12_AB12_Z3W4_machine1\n";

std::string allenact_fault(const std::string& text) {
  return tests::fault_of([&] { parse_allenact(text, "f"); });
}

TEST(KillfileAllenAct, GivesMachinesAndNoRunId) {
  const Killfile killfile = parse_allenact(kText, "f");
  EXPECT_EQ(killfile.run_id, "");
  EXPECT_EQ(killfile.engine, "ssh");
  EXPECT_EQ(killfile.on_failure, "leave");
  ASSERT_EQ(killfile.machines.size(), 2u);
  EXPECT_EQ(killfile.machines[0].host, "10.0.0.1");
  EXPECT_EQ(killfile.machines[1].id, 1);
  EXPECT_EQ(killfile.machines[1].host, "ubuntu@gpu02");
  EXPECT_EQ(killfile.machines[1].session, "allenact_2021-03-01_10-11-12_AB12_Z3W4_machine1");
  EXPECT_EQ(killfile.machines[1].state_folder, "");
}

TEST(KillfileAllenAct, MayHoldBlankLinesAndLineEndsOfWindows) {
  EXPECT_EQ(parse_allenact("\n10.0.0.1  a\r\n\n", "f").machines.at(0).session, "a");
}

TEST(KillfileAllenAct, CutInALineIsRefusedAndCutBetweenLinesNamesFewerMachines) {
  const std::size_t first = kText.find('\n') + 1;
  for (std::size_t length = 0; length < kText.size(); ++length) {
    if (length == first) {
      EXPECT_EQ(parse_allenact(kText.substr(0, length), "f").machines.size(), 1u);
    } else {
      EXPECT_NE(allenact_fault(kText.substr(0, length)), "") << length;
    }
  }
}

TEST(KillfileAllenAct, NamesALineOfAnotherForm) {
  EXPECT_EQ(allenact_fault(""), "f:1: no machine is named");
  EXPECT_EQ(allenact_fault("a b\nc\n"), "f:2: the line is not of the form 'IP screen_name'");
  EXPECT_EQ(allenact_fault("a b c\n"), "f:1: the line is not of the form 'IP screen_name'");
}

}  // namespace
}  // namespace dtool::killfiles
