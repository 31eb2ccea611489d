// SPDX-License-Identifier: MIT
// Which runs `dtool kill` ends, what it says of them, and when a killfile goes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/action.h"
#include "cli/record/record.h"
#include "killfiles/killfile.h"
#include "ssh/wire/run.h"
#include "ssh/wire/tree.h"
#include "tests/unit/cli/command_test.h"
#include "tests/unit/cli/watch/read_status.h"
#include "tests/unit/fake_remote.h"

namespace dtool::cli {
namespace {

using tests::answered;
using tests::FakeRemote;
using tests::status_reply;
using Words = std::vector<std::string>;

ssh::HostResult ended(int count, int forced = 0, const Words& left = {}, const Words& unseen = {}) {
  host::KillReply reply;
  reply.ended = count;
  reply.forced = forced;
  reply.left = left;
  reply.unseen = unseen;
  return answered(host::to_frame(reply));
}

/// Ends one process, and then takes the run's folder away.
void end_one(FakeRemote& hosts) {
  hosts.answers[0] = ended(1);
  hosts.answers_to[1] = {{0, answered(host::to_frame(host::RemoveReply()))}};
}

struct KillTest : tests::CommandTest {
  int kill(Words words) { return run(*make_kill(), std::move(words)); }
  /// What the hosts were asked to end, in the order of the fleets.
  Words asked_to_end() const {
    Words ids;
    for (const FakeRemote& each : fleets) {
      if (each.rounds.empty() || each.input_of(0).empty()) continue;
      const host::Frame frame = tests::frame_of(each.input_of(0));
      if (frame.kind == host::KillRequest::kKind)
        ids.push_back(host::open<host::KillRequest>(frame).run_id);
    }
    return ids;
  }
  bool has_said(const std::string& text) const { return said.find(text) != std::string::npos; }
};

TEST_F(KillTest, EndsTheRunThatIsNamedAndKeepsItsKillfile) {
  record("x_1", {"h1", "h2"});
  record("y_1", {"h3"});
  on_reach = [](FakeRemote& hosts) { hosts.answers = {{0, ended(3)}, {1, ended(1)}}; };
  EXPECT_EQ(kill({"x_1"}), kAllWell);
  EXPECT_EQ(said, "x_1: 4 processes ended on h[1-2]; none is left\n");
  EXPECT_EQ(out, "");
  EXPECT_EQ(asked_to_end(), Words{"x_1"});
  EXPECT_TRUE(is_recorded("x_1"));
  EXPECT_EQ(tests::request_of<host::KillRequest>(fleets[0].input_of(0)).grace_ms, 5000);
}

TEST_F(KillTest, WaitsAsLongAsItIsToldAndCountsWhatTermDidNotEnd) {
  record("x_1", {"h1"});
  on_reach = [](FakeRemote& hosts) { hosts.answers[0] = ended(5, 2); };
  EXPECT_EQ(kill({"x_1", "--grace", "0.25"}), kAllWell);
  EXPECT_EQ(said, "x_1: 5 processes ended on h1, 2 of them by KILL; none is left\n");
  EXPECT_EQ(tests::request_of<host::KillRequest>(fleets[0].input_of(0)).grace_ms, 250);
}

TEST_F(KillTest, DeletesTheKillfileWhereItIsToldTo) {
  record("x_1", {"h1"});
  on_reach = end_one;
  const std::string file = killfiles::path_of(folder(), "x_1");
  EXPECT_EQ(kill({"x_1", "--delete"}), kAllWell);
  EXPECT_EQ(said, "x_1: 1 process ended on h1; none is left\ndeleted " + file + "\n");
  EXPECT_FALSE(is_recorded("x_1"));
}

TEST_F(KillTest, AsksWhetherToForgetTheRunUnlessItIsToldNotTo) {
  on_reach = end_one;
  typed = "n\n";
  record("x_1", {"h1"});
  EXPECT_EQ(kill({"x_1"}), kAllWell);
  EXPECT_TRUE(has_said("status, logs and fetch no longer find the run then")) << said;
  EXPECT_TRUE(is_recorded("x_1"));
  typed = "y\n";
  EXPECT_EQ(kill({"x_1", "--yes"}), kAllWell);
  EXPECT_FALSE(has_said("[y/N]")) << said;
  is_json = true;
  EXPECT_EQ(kill({"x_1"}), kAllWell);
  EXPECT_FALSE(has_said("[y/N]")) << said;
  EXPECT_TRUE(is_recorded("x_1"));
  is_json = false;
  EXPECT_EQ(kill({"x_1"}), kAllWell);
  EXPECT_FALSE(is_recorded("x_1"));
}

TEST_F(KillTest, KeepsTheKillfileWhereSomethingIsLeftUnlessItIsToldToForget) {
  record("x_1", {"h1", "h2"});
  on_reach = [](FakeRemote& hosts) { hosts.answers = {{0, ended(3)}, {1, ended(0, 0, {"7 sh"})}}; };
  EXPECT_EQ(kill({"x_1", "--delete"}), kSomeFailed);
  EXPECT_TRUE(has_said("x_1: 3 processes ended on h1; the killfile is kept for h2: call it again"))
      << said;
  EXPECT_TRUE(has_said("1 of 2 hosts failed: ending x_1")) << said;
  EXPECT_TRUE(is_recorded("x_1"));
  EXPECT_EQ(kill({"x_1", "--forget"}), kSomeFailed);
  EXPECT_TRUE(has_said("ended on h1; something may be left on h2\n")) << said;
  EXPECT_TRUE(has_said(", whatever may be left on h2\n")) << said;
  EXPECT_FALSE(is_recorded("x_1"));
}

TEST_F(KillTest, ForgetsNothingAfterCtrlC) {
  record("x_1", {"h1", "h2"});
  record("y_1", {"h3"});
  on_reach = [](FakeRemote& hosts) {
    hosts.answers[0] = ended(1);
    hosts.interrupt_before = hosts.names.size() - 1;
  };
  EXPECT_EQ(kill({"x_1", "y_1", "--delete", "--forget"}), kInterrupted);
  EXPECT_TRUE(is_recorded("x_1"));
  EXPECT_EQ(fleets.size(), 1U) << "the next run is asked for";
}

TEST_F(KillTest, NamesProcessesThatItCannotTell) {
  record("x_1", {"h1"});
  on_reach = [](FakeRemote& hosts) { hosts.answers[0] = ended(1, 0, {}, {"9 tmux: new"}); };
  EXPECT_EQ(kill({"x_1"}), kAllWell);
  EXPECT_EQ(said,
            "x_1: 1 process ended on h1; no process is left that is known to be the run's\n"
            "h1: 9 tmux: new; whether the run had them started cannot be told\n");
  is_json = true;
  EXPECT_EQ(kill({"x_1"}), kAllWell);
  const auto host = nlohmann::json::parse(out).at("runs").at(0).at("hosts").at(0);
  EXPECT_EQ(host.at("unseen"), (Words{"9 tmux: new"}));
}

TEST_F(KillTest, NamesACancelledJob) {
  record("x_1", {"h1"});
  host::KillReply reply;
  reply.cancelled = "job 12";
  on_reach = [&](FakeRemote& hosts) { hosts.answers[0] = answered(host::to_frame(reply)); };
  EXPECT_EQ(kill({"x_1"}), kAllWell);
  EXPECT_EQ(said, "x_1: job 12 cancelled, 0 processes ended on h1; none is left\n");
}

TEST_F(KillTest, ItsDocumentHasWhatItSays) {
  is_json = true;
  auto written = record("x_1", {"h1", "h2"});
  written.machines[1].identity = {"0123456789abcdef0123456789abcdef", "login2",
                                  "5f0c91aa-1111-4222-8333-444455556666", "4026531836", ""};
  write(written);
  host::KillReply stranger;
  stranger.host =
      "0123456789abcdef0123456789abcdef login9 00000000-1111-4222-8333-444455556666 4026531836";
  on_reach = [&](FakeRemote& hosts) {
    hosts.answers = {{0, ended(4, 1)}, {1, answered(host::to_frame(stranger))}};
  };
  EXPECT_EQ(kill({"x_1"}), kSomeFailed);
  const auto document = nlohmann::json::parse(out);
  EXPECT_EQ(document.at("exit_code"), kSomeFailed);
  const auto& of_run = document.at("runs").at(0);
  EXPECT_EQ(of_run.at("run_id"), "x_1");
  EXPECT_EQ(of_run.at("ended"), 4);
  EXPECT_EQ(of_run.at("forced"), 1);
  EXPECT_EQ(of_run.at("cancelled"), "");
  EXPECT_EQ(of_run.at("none_left"), false);
  EXPECT_EQ(of_run.at("deleted"), false);
  EXPECT_FALSE(of_run.at("hosts").at(0).contains("unseen"));
  EXPECT_FALSE(of_run.at("hosts").at(0).contains("found_host"));
  EXPECT_EQ(of_run.at("hosts").at(1).at("recorded_host").at("name"), "login2");
  EXPECT_EQ(of_run.at("hosts").at(1).at("found_host").at("name"), "login9");
}

TEST_F(KillTest, TakesOneWayToSayWhatToEnd) {
  record("x_1", {"h1"});
  const std::string file = killfiles::path_of(folder(), "x_1");
  for (const Words& words : {Words{"x_1", "--all"}, Words{"x_1", "--screen_ids_file", file},
                             Words{"--all", "--screen_ids_file", file}}) {
    EXPECT_EQ(kill(words), kNotDone);
    EXPECT_EQ(said,
              "RUN, --all and --screen_ids_file each say what to end\nhint: give one of them");
  }
  EXPECT_TRUE(fleets.empty());
}

TEST_F(KillTest, EndsAllRecordedRuns) {
  EXPECT_EQ(kill({"--all"}), kAllWell);
  EXPECT_EQ(said, "no run is recorded in " + folder().string() + "\n");
  record("x_1", {"h1"});
  record("y_1", {"h2"});
  on_reach = [](FakeRemote& hosts) {
    hosts.answers[0] = ended(hosts.names[0].name == "h1" ? 1 : 0, 0,
                             hosts.names[0].name == "h1" ? Words() : Words{"7 sh"});
  };
  EXPECT_EQ(kill({"--all", "--yes"}), kSomeFailed);
  EXPECT_EQ(asked_to_end().size(), 2U);
  std::ofstream(folder() / "z_1.killfile") << "no killfile";
  fleets.clear();
  EXPECT_EQ(kill({"--all", "--yes"}), kNotDone);
  EXPECT_TRUE(has_said("z_1.killfile")) << said;
  EXPECT_TRUE(has_said("name the runs to end, or mend or remove that file")) << said;
  EXPECT_TRUE(fleets.empty());
}

TEST_F(KillTest, TakesAKillfileAtAnotherPlace) {
  record("x_1", {"h1"});
  const auto other = home.path() / "other.killfile";
  std::filesystem::rename(killfiles::path_of(folder(), "x_1"), other);
  on_reach = end_one;
  EXPECT_EQ(kill({"--screen_ids_file", other, "--delete"}), kAllWell);
  EXPECT_EQ(asked_to_end(), Words{"x_1"});
  EXPECT_FALSE(std::filesystem::exists(other));
}

/// A line of AllenAct's has an address and a session, and no run's id.
TEST_F(KillTest, CallsARunWithoutAnIdByItsFile) {
  const auto file = home.path() / "killfile.txt";
  std::ofstream(file) << "10.0.0.1 session_one\n";
  on_reach = end_one;
  EXPECT_EQ(kill({"--screen_ids_file", file}), kAllWell);
  EXPECT_EQ(said, "killfile.txt: 1 process ended on 10.0.0.1; none is left\n");
}

TEST_F(KillTest, EndsNothingWhereAKillfileCannotBeRead) {
  record("x_1", {"h1"});
  std::ofstream(killfiles::path_of(folder(), "y_1")) << "no killfile";
  EXPECT_EQ(kill({"x_1", "y_1"}), kNotDone);
  EXPECT_TRUE(has_said("y_1.killfile:1:")) << said;
  EXPECT_TRUE(has_said("\nhint: the file was cut short")) << said;
  EXPECT_TRUE(fleets.empty());
}

TEST_F(KillTest, GraceIsAnHourAtMost) {
  record("x_1", {"h1"});
  on_reach = end_one;
  for (const char* grace : {"-0.1", "3600.1", "soon"}) {
    EXPECT_EQ(kill({"x_1", "--grace", grace}), kNotDone);
    EXPECT_TRUE(has_said("is not a number from 0 to 3600")) << said;
  }
  EXPECT_TRUE(fleets.empty());
  for (const char* grace : {"0", "3600"}) EXPECT_EQ(kill({"x_1", "--grace", grace}), kAllWell);
}

TEST_F(KillTest, ANumberOfASignalIsNoRun) {
  record("x_1", {"h1"});
  EXPECT_EQ(kill({"-9"}), kNotDone);
  EXPECT_EQ(said,
            "kill: '-9' is no run\n"
            "hint: --grace says how long a program has between TERM and KILL");
}

TEST_F(KillTest, ARunThatIsCalledAllIsTakenAndNoOther) {
  record("x_1", {"h1"});
  EXPECT_EQ(kill({"all"}), kNotDone);
  EXPECT_EQ(said, "no run 'all' is recorded\nhint: --all ends every run");
  record("all_1", {"h2"});
  on_reach = end_one;
  EXPECT_EQ(kill({"all"}), kAllWell);
  EXPECT_EQ(asked_to_end(), Words{"all_1"});
}

/// Of several runs that a word may mean.
TEST_F(KillTest, TakesTheOnlyOneThatHasNotEnded) {
  record("train_1", {"h1"});
  auto other = record("train_2", {"h2"});
  const auto answer = [](const std::string& first, const std::string& second) {
    return [=, number = 0](FakeRemote& hosts) mutable {
      if (number++ == 0) {
        // Newest first, or in the order of their names.
        for (std::size_t i = 0; i < hosts.names.size(); ++i)
          hosts.answers[i] = answered(status_reply({hosts.names[i].name == "h1" ? first : second}));
      } else {
        hosts.answers[0] = ended(1);
      }
    };
  };
  on_reach = answer("pid=7\nup_s=5", "pid=8\nexit_code=0");
  EXPECT_EQ(kill({"train"}), kAllWell);
  EXPECT_EQ(asked_to_end(), Words{"train_1"});
  // Where both go on, it is not known which is meant.
  fleets.clear();
  on_reach = answer("pid=7\nup_s=5", "pid=8\nup_s=5");
  EXPECT_EQ(kill({"train"}), kNotDone);
  EXPECT_TRUE(has_said("train_1")) << said;
  EXPECT_TRUE(has_said("train_2")) << said;
  // Nobody is asked where this machine knows.
  fleets.clear();
  other.ended = "2026-11-27T11:00:00Z";
  write(other);
  on_reach = end_one;
  EXPECT_EQ(kill({"train"}), kAllWell);
  EXPECT_EQ(asked_to_end(), Words{"train_1"});
  EXPECT_EQ(fleets.size(), 1U);
  // Nothing is ended after Ctrl-C.
  fleets.clear();
  other.ended = "";
  write(other);
  on_reach = [](FakeRemote& hosts) { hosts.interrupt_before = 0; };
  EXPECT_EQ(kill({"train"}), kInterrupted);
  EXPECT_EQ(asked_to_end(), Words());
}

struct KillWithoutRunTest : KillTest {
  KillWithoutRunTest() {
    on_reach = [this](FakeRemote& hosts) {
      if (fleets.size() > 1) {
        hosts.answers = {{0, ended(1)}, {1, ended(1)}};
        return;
      }
      for (std::size_t i = 0; i < hosts.names.size(); ++i)
        hosts.answers[i] = states.contains(hosts.names[i].name)
                               ? answered(status_reply({states.at(hosts.names[i].name)}))
                               : tests::failed(ssh::Failure::unreachable, "no route");
    };
  }
  int kill(Words words) {
    fleets.clear();
    return KillTest::kill(std::move(words));
  }

  std::map<std::string, std::string> states;  ///< of a host's machine; that of others is not known
  const std::string kRuns = "pid=7\nup_s=5";
  const std::string kHasEnded = "pid=7\nexit_code=0";
};

TEST_F(KillWithoutRunTest, NothingIsRecorded) {
  EXPECT_EQ(kill({}), kNotDone);
  EXPECT_EQ(said, "no run is recorded in " + folder().string());
}

TEST_F(KillWithoutRunTest, AsksAboutEachRunThatRuns) {
  record("x_1", {"h1"});
  record("y_1", {"h2", "h3"});
  states = {{"h1", kHasEnded}, {"h2", kHasEnded}, {"h3", kRuns}};
  typed = "y\nn\n";
  EXPECT_EQ(kill({}), kAllWell);
  EXPECT_TRUE(has_said("x_1 has ended; to forget it: dtool kill x_1 --delete\n")) << said;
  EXPECT_TRUE(has_said("end y_1 (2 machines, started 20")) << said;
  EXPECT_EQ(asked_to_end(), Words{"y_1"});
  typed = "n\n";
  EXPECT_EQ(kill({}), kAllWell);
  EXPECT_EQ(asked_to_end(), Words());
}

TEST_F(KillWithoutRunTest, CountsThoseThatHaveEnded) {
  record("x_1", {"h1"});
  record("y_1", {"h2"});
  states = {{"h1", kHasEnded}, {"h2", "pid=7\nkilled"}};
  EXPECT_EQ(kill({}), kAllWell);
  EXPECT_EQ(said,
            "2 runs have ended (dtool list shows them); to forget one: dtool kill RUN --delete\n");
}

TEST_F(KillWithoutRunTest, WhereNobodyCanAnswerOneHasToBeNamed) {
  record("x_1", {"h1"});
  states = {{"h1", kRuns}};
  EXPECT_EQ(kill({}), kNotDone);
  EXPECT_TRUE(has_said("no run was named\nhint: name one (dtool list shows them), or give --all"))
      << said;
  EXPECT_EQ(kill({"--yes"}), kAllWell);
  EXPECT_EQ(asked_to_end(), Words{"x_1"});
  record("y_1", {"h1"});
  states["h1"] = kRuns;
  on_reach = [this](FakeRemote& hosts) {
    hosts.answers[0] = answered(status_reply({kRuns, kRuns}));
  };
  EXPECT_EQ(kill({"--yes"}), kNotDone);
  EXPECT_TRUE(has_said("2 runs run\nhint: name one")) << said;
  EXPECT_EQ(asked_to_end(), Words());
}

TEST_F(KillWithoutRunTest, AHostThatDoesNotAnswerMayHaveTheRunUnlessItsEndIsKnown) {
  auto run = record("x_1", {"h1", "h2"});
  states = {{"h1", kHasEnded}};
  typed = "n\n";
  EXPECT_EQ(kill({}), kAllWell);
  EXPECT_TRUE(has_said("end x_1 (2 machines")) << said;
  run.ended = "2026-11-27T11:00:00Z";
  write(run);
  EXPECT_EQ(kill({}), kAllWell);
  EXPECT_TRUE(has_said("x_1 has ended")) << said;
  states["h1"] = kRuns;  // whatever is known
  EXPECT_EQ(kill({}), kAllWell);
  EXPECT_TRUE(has_said("end x_1 (2 machines")) << said;
}

TEST_F(KillWithoutRunTest, ARecordKnowsTheEndToo) {
  record("x_1", {"h1"});  // which does not answer
  typed = "n\n";
  RunRecord kept;
  kept.run_id = "x_1";
  write_record(kept);
  EXPECT_EQ(kill({}), kAllWell);
  EXPECT_TRUE(has_said("end x_1 (1 machine")) << said;
  kept.end.emplace().state = "ended";
  write_record(kept);
  EXPECT_EQ(kill({}), kAllWell);
  EXPECT_TRUE(has_said("x_1 has ended")) << said;
  std::ofstream(record_folder() / "x_1.json") << "no record";
  EXPECT_EQ(kill({}), kAllWell);
  EXPECT_TRUE(has_said("end x_1 (1 machine")) << said;
}

TEST_F(KillWithoutRunTest, NothingIsEndedAfterCtrlC) {
  record("x_1", {"h1"});
  on_reach = [](FakeRemote& hosts) { hosts.interrupt_before = 0; };
  EXPECT_EQ(kill({"--yes"}), kInterrupted);
  EXPECT_EQ(fleets.size(), 1U);
}

}  // namespace
}  // namespace dtool::cli
