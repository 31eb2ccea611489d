// SPDX-License-Identifier: MIT
// What one machine of a supervised run does: its script's end, decisions, the loss of machine 0,
// and dtool kill.
#include "ssh/host/session/machine.h"

#include <gtest/gtest.h>

#include <map>

#include "ssh/host/session/session.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

/// A host on which nothing happens but what a test says.
struct FakeHost : Effects {
  bool start_script(int attempt, const std::vector<int>& places) override {
    if (is_too_late) return false;
    std::string words = std::to_string(attempt);
    for (const int place : places) words += " " + std::to_string(place);
    started.push_back(words);
    script_end.reset();
    return true;
  }
  std::optional<int> wait_for_script(Time) override { return script_end; }
  void end_processes() override {
    ++ended;
    if (!script_end && !outlives_its_end) script_end = 143;
  }
  std::optional<std::chrono::seconds> find_kill() override { return kill; }
  std::string read_first_failure() override { return first_failure; }
  std::string read_last_words(int attempt, int rank) override {
    return last_words[std::to_string(attempt) + "." + std::to_string(rank)];
  }
  std::string read_stopped_rank() override { return stopped_rank; }
  std::string last_line() override { return last; }
  std::uint64_t log_bytes() override { return 77; }
  std::optional<std::uint64_t> count_out_of_memory_kills() override { return out_of_memory; }
  void say(const std::string& line) override { said.push_back(line); }
  void note(const std::string& file, const std::string& line) override { files[file] = line; }
  void record_end(int code) override { recorded.push_back(code); }
  void tell(const Report& report) override { reports.push_back(report); }

  bool is_too_late = false;
  bool outlives_its_end = false;  ///< the script does
  std::optional<int> script_end;
  std::optional<std::chrono::seconds> kill;
  std::string first_failure = "3";
  std::map<std::string, std::string> last_words;
  std::string stopped_rank;
  std::string last;
  std::uint64_t out_of_memory = 5;

  std::vector<std::string> started;
  int ended = 0;
  std::vector<std::string> said;
  std::map<std::string, std::string> files;
  std::vector<int> recorded;
  std::vector<Report> reports;
};

class MachineTest : public testing::Test {
 protected:
  void begin(int place = 1, int max_restarts = 0) {
    settings_ = {place, "h1", 3, max_restarts, 60s, "127.0.0.1", 1, {}};
    machine_.emplace(settings_, host_, now_);
  }
  void turn(Time later = 0s) {
    now_ += later;
    machine_->turn(now_);
  }
  void obey(const Decision& decision) {
    machine_->take(decision);
    turn();
  }
  void end_script(int code) {
    host_.script_end = code;
    turn();
  }

  Supervision settings_;
  FakeHost host_;
  Time now_ = 1000s;
  std::optional<Machine> machine_;
};

const Decision kFirst{0, Verb::run, {}, {}};
const std::string kCause = "rank 3 on machine 1 (h1) ended with exit code 7: sick";

TEST_F(MachineTest, RunsItsScriptAndSaysSo) {
  begin();
  EXPECT_EQ(host_.started, std::vector<std::string>{"0"});
  EXPECT_EQ(host_.reports, (std::vector<Report>{{0, Standing::running}}));
  obey(kFirst);
  EXPECT_EQ(host_.files["supervision"], "ok");
  EXPECT_EQ(host_.started.size(), 1U);
}

TEST_F(MachineTest, AGoodEndIsRecordedAtOnceWhereNothingCanBeStartedAgain) {
  begin();
  obey(kFirst);
  end_script(0);
  EXPECT_EQ(host_.recorded, std::vector<int>{0});
  EXPECT_FALSE(machine_->is_over());
  obey({0, Verb::done, {}, {}});
  EXPECT_TRUE(machine_->is_over());
  EXPECT_EQ(machine_->code(), 0);
  EXPECT_EQ(host_.reports.back().standing, Standing::gone);
  EXPECT_FALSE(host_.files.contains("stopped") || host_.files.contains("cause"));
}

TEST_F(MachineTest, AGoodEndMayBeginAgainWhereThereAreRestarts) {
  begin(1, 1);
  end_script(0);
  EXPECT_TRUE(host_.recorded.empty());
  obey({0, Verb::gather, {}, "rank 0 failed", CausePlace{0, 0}});
  EXPECT_EQ(host_.reports.back(), (Report{0, Standing::stopped, 0, ""}));
  EXPECT_EQ(host_.said.back(), "attempt 1 of 2 failed: rank 0 failed");
  EXPECT_EQ(host_.files["earlier_failure"], "0 77 0 0\nrank 0 failed");
  obey({1, Verb::run, {0, 1, 2}, {}});
  EXPECT_EQ(host_.started.back(), "1 0 1 2");
  EXPECT_EQ(host_.said.back(), "attempt 2 of 2 begins");
  EXPECT_EQ(host_.files["attempt"], "1");
}

TEST_F(MachineTest, AFailureIsToldWithItsCause) {
  begin();
  host_.last = "sick";
  end_script(7);
  EXPECT_EQ(host_.reports.back(), (Report{0, Standing::failed, 7, kCause, 3}));
  obey({0, Verb::end, {}, kCause, CausePlace{1, 3}});
  EXPECT_EQ(host_.files["cause"], kCause);
  EXPECT_EQ(host_.files["cause_place"], "1 3");
  EXPECT_EQ(host_.said.back(), "the run failed: " + kCause);
  EXPECT_EQ(host_.recorded, std::vector<int>{7});
  EXPECT_EQ(host_.reports.back(), (Report{0, Standing::gone, 7, kCause, 3}));
  EXPECT_FALSE(host_.files.contains("stopped"));
  EXPECT_EQ(host_.ended, 1);  // daemons
}

TEST_F(MachineTest, AVictimFollowsAnotherAndIsTheCauseIfThereWasNoOther) {
  for (const int cause_machine : {0, 1}) {
    host_ = {};
    begin();
    host_.last = "Connection closed by peer";
    end_script(7);
    EXPECT_EQ(host_.reports.back().standing, Standing::followed);
    obey({0, Verb::end, {}, kCause, CausePlace{cause_machine, 3}});
    EXPECT_EQ(host_.files.contains("stopped"), cause_machine == 0);
  }
}

TEST_F(MachineTest, ASignalIsNamedAndSoIsTheLackOfMemory) {
  begin();
  end_script(137);
  EXPECT_EQ(host_.reports.back().text, "rank 3 on machine 1 (h1) was killed by signal 9 (KILL)");
  host_ = {};
  begin();
  host_.first_failure.clear();
  end_script(137);
  EXPECT_EQ(host_.reports.back().text,
            "dtool's own process on machine 1 (h1) was killed by signal 9 (KILL)");
  host_ = {};
  begin();
  host_.first_failure = "dtool's own process for rank 3";
  host_.last = "of a rank";
  end_script(137);
  EXPECT_EQ(host_.reports.back().text,
            "dtool's own process for rank 3 on machine 1 (h1) was killed by signal 9 (KILL)");
  host_ = {};
  begin();
  host_.out_of_memory = 6;
  host_.first_failure = "mpirun";
  end_script(137);
  EXPECT_EQ(host_.reports.back().text,
            "mpirun on machine 1 (h1) was killed by signal 9 (KILL): the kernel ran out of memory");
  host_ = {};
  begin();
  host_.last = "step 7";
  end_script(139);
  EXPECT_EQ(host_.reports.back().text,
            "rank 3 on machine 1 (h1) was killed by signal 11 (SEGV); its last line: step 7");
}

TEST_F(MachineTest, ItsOwnWordsAreBetterThanItsLogs) {
  begin();
  host_.last = "epoch 3";
  host_.last_words["0.3"] = "no such file (hint: make one)";
  end_script(1);
  EXPECT_EQ(
      host_.reports.back(),
      (Report{0, Standing::failed, 1,
              "rank 3 on machine 1 (h1) ended with exit code 1: no such file (hint: make one)",
              3}));
}

TEST_F(MachineTest, WithWordsSomeExitCodesHaveAMeaning) {
  const auto told = [this](int code, const std::string& words) {
    host_ = {};
    host_.last = "epoch 3";
    begin();
    host_.last_words["0.3"] = words;
    end_script(code);
    return host_.reports.back();
  };
  EXPECT_EQ(told(2, "no such key").standing, Standing::mistaken);
  EXPECT_EQ(told(3, "a peer is gone"), (Report{0, Standing::followed, 3, "a peer is gone", 3}));
  EXPECT_EQ(told(4, "no number"), (Report{0, Standing::failed, 4, "no number", 3}));
  for (const int code : {2, 3, 4}) EXPECT_EQ(told(code, "").standing, Standing::failed);
  EXPECT_EQ(told(3, "").text, "rank 3 on machine 1 (h1) ended with exit code 3: epoch 3");
}

TEST_F(MachineTest, WhoseProcessStoppedForOthersWasStopped) {
  begin();
  host_.last_words["0.3"] = "a peer is gone";
  end_script(3);
  obey({0, Verb::end, {}, "rank 0 failed"});
  EXPECT_TRUE(host_.files.contains("stopped"));
}

TEST_F(MachineTest, AStoppedRankIsToldAndIsTheCauseOfWhatFollows) {
  begin();
  host_.stopped_rank = "4";
  turn();
  EXPECT_EQ(host_.reports.back(),
            (Report{0, Standing::running, 0, "rank 4 on machine 1 (h1) is stopped", 4}));
  host_.stopped_rank = "";
  turn();
  EXPECT_EQ(host_.reports.back(), (Report{0, Standing::running}));
  host_.stopped_rank = "4";
  turn();
  host_.last_words["0.3"] = "a peer is gone";
  end_script(3);
  EXPECT_EQ(host_.reports.back(),
            (Report{0, Standing::failed, 3, "rank 4 on machine 1 (h1) is stopped", 4}));
}

TEST_F(MachineTest, IsEndedWithTheRun) {
  begin();
  obey({0, Verb::end, {}, "rank 0 failed"});
  EXPECT_EQ(host_.ended, 1);
  EXPECT_TRUE(host_.files.contains("stopped"));
  EXPECT_EQ(host_.recorded, std::vector<int>{143});
  EXPECT_TRUE(machine_->is_over());
}

TEST_F(MachineTest, WhoseScriptOutlivesItsEndCountsAsKilled) {
  begin();
  host_.outlives_its_end = true;
  obey({0, Verb::end, {}, "rank 0 failed"});
  EXPECT_EQ(host_.recorded, std::vector<int>{137});
  EXPECT_TRUE(machine_->is_over());
}

TEST_F(MachineTest, IsEndedWellWhenTheMachineThatTheRunEndsWithHas) {
  begin();
  obey({0, Verb::finish, {}, {}});
  EXPECT_EQ(host_.ended, 1);
  EXPECT_EQ(host_.recorded, std::vector<int>{0});
  EXPECT_EQ(machine_->code(), 0);
  EXPECT_TRUE(machine_->is_over());
  EXPECT_FALSE(host_.files.contains("stopped") || host_.files.contains("cause"));
}

TEST_F(MachineTest, AnAttemptThatItMissedIsOverForItToo) {
  begin(1, 2);
  obey({1, Verb::end, {}, "rank 0 failed"});
  EXPECT_EQ(host_.files["attempt"], "1");
  EXPECT_TRUE(machine_->is_over());
}

TEST_F(MachineTest, OneThatWasLeftOutWaitsForTheEnd) {
  begin(1, 1);
  obey({1, Verb::run, {0, 2}, {}});
  EXPECT_EQ(host_.ended, 1);
  EXPECT_EQ(host_.started.size(), 1U);
  EXPECT_EQ(host_.said.back(), "attempt 2 of 2 begins without this machine, which did not answer");
  EXPECT_EQ(host_.reports.back(), (Report{1, Standing::left_out, 143, ""}));
  EXPECT_FALSE(machine_->is_over());
  obey({1, Verb::done, {}, {}});
  EXPECT_TRUE(machine_->is_over());
  EXPECT_TRUE(host_.files.contains("stopped"));
}

TEST_F(MachineTest, OldDecisionsAndTheSameOnesDoNothing) {
  begin(1, 3);
  obey({2, Verb::run, {0, 1}, {}});
  const std::size_t reports = host_.reports.size();
  obey({2, Verb::run, {0, 1}, {}});
  obey({1, Verb::run, {0, 1}, {}});
  obey({1, Verb::gather, {}, "old"});
  EXPECT_EQ(host_.reports.size(), reports);
}

TEST_F(MachineTest, IsGatheredOnceThoughItHearsOfItTwice) {
  begin(1, 1);
  for (int i = 0; i < 2; ++i) obey({0, Verb::gather, {}, "rank 0 failed"});
  EXPECT_EQ(host_.ended, 1);
}

TEST_F(MachineTest, ACauseHasAThousandLettersAtMost) {
  begin();
  host_.last = std::string(2000, 'x');
  end_script(7);
  EXPECT_EQ(host_.reports.back().text.size(), 1000U);
}

TEST_F(MachineTest, NoRankIsStoppedOnceItsScriptHasEnded) {
  begin();
  host_.stopped_rank = "4";
  end_script(0);
  EXPECT_EQ(host_.reports.back(), (Report{0, Standing::ended}));
}

TEST_F(MachineTest, GivesWayToKillAsLongAsItMayTakeAndNoLonger) {
  begin();
  host_.kill = 95s;
  obey({0, Verb::end, {}, "rank 0 failed"});
  turn(95s - 1ms);
  EXPECT_FALSE(machine_->is_over());
  turn(1ms);
  EXPECT_TRUE(machine_->is_over());
  EXPECT_FALSE(machine_->is_standing_still());
}

TEST_F(MachineTest, WithoutMachineZeroARunningPartEnds) {
  begin();
  obey(kFirst);
  machine_->take_loss("nothing listens");
  turn();
  EXPECT_EQ(host_.files["supervision"], "nothing listens");
  EXPECT_EQ(host_.files["cause"], "nothing listens");
  EXPECT_EQ(host_.ended, 1);
  EXPECT_TRUE(machine_->is_over());
}

TEST_F(MachineTest, WithoutMachineZeroAnEarlierFailureStaysTheCauseUnlessItFollowsFromAnother) {
  for (const bool follows : {false, true}) {
    host_ = {};
    begin();
    obey(kFirst);
    host_.last = follows ? "Connection closed by peer" : "sick";
    end_script(7);
    machine_->take_loss("nothing listens");
    turn(6s);
    EXPECT_EQ(host_.files["cause"], follows ? "nothing listens" : kCause);
    EXPECT_EQ(host_.files.contains("cause_place"), !follows);
    EXPECT_TRUE(machine_->is_over());
  }
}

TEST_F(MachineTest, WithoutMachineZeroAPartThatHasEndedStaysWell) {
  begin();
  obey(kFirst);
  end_script(0);
  machine_->take_loss("nothing listens");
  turn();
  EXPECT_TRUE(machine_->is_over());
  EXPECT_EQ(host_.recorded.front(), 0);
  EXPECT_FALSE(host_.files.contains("cause"));
}

TEST_F(MachineTest, WhereMachineZeroWasNeverHeardTheScriptGoesOn) {
  begin();
  machine_->take_loss("no answer");
  turn(1000s);
  EXPECT_FALSE(machine_->is_over());
  end_script(7);
  turn(10s);
  EXPECT_FALSE(machine_->is_over());
  turn(1s);
  EXPECT_TRUE(machine_->is_over());
  EXPECT_EQ(host_.files["cause"], "rank 3 on machine 1 (h1) ended with exit code 7");
}

TEST_F(MachineTest, AGoodEndHopesTwoMinutesForMachineZero) {
  begin();
  end_script(0);
  turn(120s);
  EXPECT_FALSE(machine_->is_over());
  turn(1s);
  EXPECT_TRUE(machine_->is_over());
}

TEST_F(MachineTest, OneThatWasHeardTooLateEndsAsItsScriptDoes) {
  begin();
  obey({0, Verb::done, {}, {}});
  EXPECT_FALSE(machine_->is_over());
  end_script(0);
  turn(121s);
  EXPECT_TRUE(machine_->is_over());
}

TEST_F(MachineTest, OneThatMissedTheLastAttemptEndsItsScriptOfAnEarlierOne) {
  begin(1, 2);
  obey(kFirst);
  obey({1, Verb::done, {}, {}});
  EXPECT_TRUE(machine_->is_over());
  EXPECT_EQ(host_.ended, 1);
  EXPECT_TRUE(host_.files.contains("stopped"));
}

TEST_F(MachineTest, GivesWayToKillAndTellsNothingMeanwhile) {
  begin();
  obey(kFirst);
  host_.kill = 95s;
  const std::size_t reports = host_.reports.size();
  end_script(143);
  obey({0, Verb::end, {}, "rank 0 failed"});
  turn(94s);
  EXPECT_TRUE(machine_->is_standing_still());
  EXPECT_EQ(host_.reports.size(), reports);
  EXPECT_EQ(host_.ended, 0);
  EXPECT_TRUE(host_.recorded.empty());
  // A kill that was cut off is not waited for longer.
  turn(2s);
  EXPECT_TRUE(machine_->is_over());
}

TEST_F(MachineTest, AKillThatWasCutOffHidesNoGoodEndFromItsLossOfMachineZero) {
  begin();
  obey(kFirst);
  host_.kill = 95s;
  end_script(0);
  machine_->take_loss("nothing listens");
  turn(96s);
  EXPECT_TRUE(machine_->is_over());
  EXPECT_EQ(host_.recorded.front(), 0);
  EXPECT_FALSE(host_.files.contains("cause"));
}

TEST_F(MachineTest, NothingIsStartedAfterKill) {
  begin(1, 1);
  host_.is_too_late = true;
  obey({1, Verb::run, {0, 1, 2}, {}});
  EXPECT_TRUE(machine_->is_over() && machine_->came_too_late());
  EXPECT_EQ(machine_->code(), 143);
  EXPECT_TRUE(host_.recorded.empty());
}

TEST_F(MachineTest, MachineZeroHearsItself) {
  begin(0);
  machine_->take_loss("cannot listen on port 1: it is taken");
  EXPECT_EQ(host_.files["supervision"], "cannot listen on port 1: it is taken");
  end_script(7);
  turn(1000s);
  EXPECT_FALSE(machine_->is_over());
  obey({0, Verb::end, {}, "sick"});
  EXPECT_TRUE(machine_->is_over());
  EXPECT_EQ(host_.files["supervision"], "cannot listen on port 1: it is taken");
}

/// A way to machine 0 that notes how many reports the machine had made by each turn.
struct FakeLink {
  std::optional<std::string> turn(Time) {
    reports_by_turn.push_back(host->reports.size());
    return loss;
  }
  FakeHost* host;
  std::optional<std::string> loss = {};
  std::vector<std::size_t> reports_by_turn = {};
};

TEST_F(MachineTest, AFailureIsToldBeforeASignOfLife) {
  begin();
  FakeLink link{&host_};
  std::optional<Decision> heard = kFirst;
  const auto send = [](const Decision&) { FAIL() << "it is not machine 0"; };
  take_turn(nullptr, *machine_, &link, heard, send, now_);
  EXPECT_EQ(heard, std::nullopt);
  host_.script_end = 7;  // while the host was frozen
  take_turn(nullptr, *machine_, &link, heard, send, now_ + 70s);
  EXPECT_EQ(link.reports_by_turn, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(host_.reports.back().standing, Standing::failed);
}

TEST_F(MachineTest, ALossIsActedOnInTheTurnThatFindsIt) {
  begin();
  machine_->take(kFirst);
  FakeLink link{&host_, "machine 0 is silent"};
  std::optional<Decision> heard;
  take_turn(
      nullptr, *machine_, &link, heard, [](const Decision&) {}, now_);
  EXPECT_TRUE(machine_->is_over());
}

}  // namespace
}  // namespace dtool::host
