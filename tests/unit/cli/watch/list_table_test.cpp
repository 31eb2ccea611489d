// SPDX-License-Identifier: MIT
// The rows of `dtool list` fit the terminal: what can be missed goes first.
#include "cli/watch/list.h"

#include <gtest/gtest.h>

#include "cli/console.h"

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
    runs_[1].killfile.chain = {"mnist_20261121-034512-111111", "mnist_20261121-034513-222222"};
    MachineStatus running;
    running.state = MachineState::running;
    runs_[0].states = std::vector<MachineStatus>(8, running);
    runs_[1].states.emplace();
    RunRecord& record = runs_[0].record.emplace();
    record.program = {"python3", "train.py", "--lr", "0.5", "--name", "a b"};
    record.experiment = "[train]\nepochs = 3\nname = \"deep\"\n";
    record.code.branch = "wide";
    record.end.emplace().state = "ended";
    record.end->metrics = {{"epoch", 3}, {"loss", 0.123456789}, {"accuracy", 0.5}};
    runs_[1].killfile.what = "mnist";
  }
  std::vector<std::string> lines(std::size_t columns) const {
    auto lines = list_table(Console(), runs_, Clock::utc, kNow, columns);
    for (const std::string& each : lines)
      EXPECT_TRUE(columns == 0 || length(each) <= columns) << each;
    return lines;
  }
  std::vector<std::string> found(const std::vector<std::string>& words) const {
    std::vector<std::string> ids;
    for (const ListedRun& each : runs_)
      if (matches(each, words)) ids.push_back(each.killfile.run_id.substr(0, 5));
    return ids;
  }

  static constexpr std::time_t kNow = 1795232712 + 2 * 3600;  // two hours later
  std::vector<ListedRun> runs_ = {{recorded("digits_20261121-034512-3fa91c", 8)},
                                  {recorded("mnist_20261121-034512-3fa91c", 2)}};
};

TEST_F(ListTableTest, AFileGetsEverything) {
  const auto all = lines(0);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0],
            "RUN                            STARTED               AGE      STATE    METRIC        "
            "MACHINES  HOSTS       RAN");
  EXPECT_EQ(all[1],
            "digits_20261121-034512-3fa91c  2026-11-21T03:45:12Z  2 h ago  running  accuracy 0.5  "
            "       8  gpu[10-17]  python3 train.py --lr 0.5 --name 'a b'");
  EXPECT_EQ(all[2],
            "mnist_20261121-034512-3fa91c   2026-11-21T03:45:12Z  2 h ago  unknown                "
            "       2  gpu[10-11]  mnist  resumes mnist_20261121-034513-222222");
}

TEST_F(ListTableTest, ATerminalOf80ColumnsGetsRowsOfOneLine) {
  const auto all = lines(80);
  EXPECT_EQ(all[0], "RUN                            AGE      STATE    RAN");
  EXPECT_EQ(all[1],
            "digits_20261121-034512-3fa91c  2 h ago  running  python3 train.py --lr 0.5 --na…");
}

TEST_F(ListTableTest, WhatIsKnownHereIsToldWithoutAsking) {
  for (ListedRun& each : runs_) each.states.reset();
  EXPECT_NE(lines(0)[1].find("2 h ago  ended  accuracy 0.5"), std::string::npos) << lines(0)[1];
  runs_[1].killfile.ended = "2026-11-21T03:46:12Z";
  EXPECT_EQ(known_end(runs_[1]), "killed");
}

TEST_F(ListTableTest, AVeryNarrowTerminalStillGetsTheIds) {
  const auto all = list_table(Console(), runs_, Clock::utc, kNow, 20);
  EXPECT_EQ(all[1], "digits_20261121-034512-3fa91c  running  ");
}

TEST_F(ListTableTest, TheMetricIsOneThatTellsSomething) {
  auto& end = *runs_[0].record->end;
  EXPECT_EQ(last_metric(runs_[0]), "accuracy 0.5");
  end.metrics = {{"step", 5}, {"time", 1.5}, {"other", 2}, {"train_loss", 0.123456789}};
  EXPECT_EQ(last_metric(runs_[0]), "train_loss 0.1235");
  end.validation = {{"epoch", 1}, {"success", 0.75}};
  EXPECT_EQ(last_metric(runs_[0]), "success 0.75");
  end.validation = nullptr;
  end.metrics = {{"step", 5}, {"note", "none"}};
  EXPECT_EQ(last_metric(runs_[0]), "");
}

TEST_F(ListTableTest, RunsAreFoundByWhatIsKnownOfThem) {
  const std::vector<std::string> both = {"digit", "mnist"}, first = {"digit"}, second = {"mnist"};
  EXPECT_EQ(found({}), both);
  EXPECT_EQ(found({"train.PY"}), first);
  EXPECT_EQ(found({"gpu11"}), both);
  EXPECT_EQ(found({"gpu17"}), first);
  EXPECT_EQ(found({"mnist"}), second);
  EXPECT_EQ(found({"mnist", "gpu17"}), std::vector<std::string>());
  for (const char* word : {"lr=0.5", "name=a b", "epochs=3", "train.epochs=3", "name=deep", "wide"})
    EXPECT_EQ(found({word}), first) << word;
  for (const char* word : {"lr=0", "r=0.5", "pochs=3", "lr=0.50"})
    EXPECT_EQ(found({word}), std::vector<std::string>()) << word;
}

}  // namespace
}  // namespace dtool::cli
