// SPDX-License-Identifier: MIT
// Spoilt answers of hosts: whatever a host says is read as what it may be or not at all, and ends
// nothing but that host's part.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/hosts/check_facts.h"
#include "cli/kill/end_run.h"
#include "cli/ready/check_hosts.h"
#include "cli/record/record.h"
#include "cli/watch/status_answer.h"
#include "ssh/script.h"
#include "ssh/wire/check.h"
#include "ssh/wire/push.h"
#include "ssh/wire/run.h"
#include "sync/rsync.h"
#include "tests/fuzz/mutate.h"
#include "tests/unit/fake_remote.h"

namespace dtool {
namespace {

const std::vector<std::string> kTokens = {"\xff\xff", "=",        "\n",
                                          "\r",       "\0",       " ",
                                          "-1",       "0",        "99999999999999999999",
                                          "1e9",      "nan",      "0x10",
                                          "\x1b[2J",  "\xc2\x9b", "\xff",
                                          "../",      "$(id)",    "a[$(id)]",
                                          "yes",      "{",        "\"",
                                          "\1"};

ssh::HostResult result_of(const std::string& out) {
  ssh::HostResult result;
  result.exit_code = 0;
  result.out = out;
  return result;
}

TEST(AnswersFuzz, StepsOfAPushAreReadOrRefused) {
  host::TreeReply known;
  known.basis = std::string(64, 'a');
  host::TreeReply shared;
  shared.holder = 3;
  host::TreeReply foreign;
  foreign.placed.emplace();
  foreign.placed->foreign = 12;
  foreign.placed->first = {"a"};
  host::PlaceReply placed;
  placed.lacks = {{3, 4}};
  fuzz::Mutator mutator(
      {host::to_frame(known), host::to_frame(shared), host::to_frame(foreign),
       host::to_frame(placed), host::to_frame(host::Fault{"cannot write", "free some space"})},
      kTokens);
  int asked = 0;
  int placed_or_not = 0;
  fuzz::feed(mutator, 4000, [&](const std::string& text) {
    const auto read = [&text](auto reader) {
      ssh::HostResult result = result_of(text);
      const auto value = reader(result);
      // What is not understood is a failure of the host that says why.
      EXPECT_TRUE(value || result.exit_code != 0) << text;
      return value.has_value() ? 1 : 0;
    };
    asked += read(ssh::reply_in<host::TreeReply>);
    placed_or_not += read(ssh::reply_in<host::PlaceReply>);
  });
  EXPECT_GT(asked, 50);
  EXPECT_GT(placed_or_not, 50);
}

TEST(AnswersFuzz, AStatusIsOneAnyoneCanPrint) {
  cli::AskedMachine asked;
  asked.run_id = "run_1";
  asked.machine.host = "h1";
  host::StatusReply running;
  running.host = "- h1 5f0c91aa-1111-4222-8333-444455556666 4026531836";
  host::StatusAnswer& one = running.machines.emplace_back();
  one.pid = 12;
  one.up_s = 100;
  one.attempt = 1;
  one.supervision = "ok";
  one.last_line.text = "x";
  one.processes = 3;
  one.cpu_percent = 120;
  one.memory_bytes = 9;
  one.gpus = {"0, 1, 2, 3"};
  host::StatusReply failed;
  host::StatusAnswer& other = failed.machines.emplace_back();
  other.pid = 12;
  other.exit_code = 3;
  other.ended_s_ago = 5;
  other.cause.text = "rank 0";
  other.lines = {{"a"}, {"b"}};
  other.metrics.text = R"({"event": "step", "epoch": 1, "step": 2, "loss": 0.5})";
  fuzz::Mutator mutator({host::to_frame(running), host::to_frame(failed)}, kTokens);
  int known = 0;
  fuzz::feed(mutator, 4000, [&](const std::string& text) {
    const auto statuses = cli::read_statuses({asked}, result_of(text));
    ASSERT_EQ(statuses.size(), 1U) << text;
    const std::string json = cli::to_json(statuses[0]).dump();
    EXPECT_FALSE(json.empty());
    EXPECT_FALSE(cli::state_text(statuses[0]).empty());
    if (statuses[0].state != cli::MachineState::unreachable) ++known;
  });
  EXPECT_GT(known, 100);
}

TEST(AnswersFuzz, ARunIsOverOnlyWithAProofOfIt) {
  const std::string identity = "- h1 5f0c91aa-1111-4222-8333-444455556666 4026531836";
  killfiles::Killfile killfile;
  killfile.run_id = "x_1";
  killfile.machines.push_back({0, "h1", "s", killfiles::state_folder("x_1", 0), "/log", ""});
  killfile.machines[0].identity = killfiles::parse_identity(identity).value();
  host::KillReply over;
  over.ended = 3;
  over.forced = 1;
  over.host = identity;
  host::KillReply left = over;
  left.left = {"77 python train.py"};
  left.unseen = {"78 docker"};
  host::KillReply elsewhere = over;
  elsewhere.host = "- h2 5f0c91aa-2222-4222-8333-444455556666 4026531836";
  host::KillReply gone = over;
  gone.no_folder = "~/.dtool/runs/x_1";
  host::KillReply scheduled = over;
  scheduled.cancelled = "job 12";
  scheduled.job_left = "squeue does not answer";
  fuzz::Mutator mutator({host::to_frame(over), host::to_frame(left), host::to_frame(elsewhere),
                         host::to_frame(gone), host::to_frame(scheduled)},
                        kTokens);
  int proven = 0;
  int doubted = 0;
  fuzz::feed(mutator, 2000, [&](const std::string& text) {
    tests::FakeRemote remote("h1");
    remote.answers[0] = result_of(text);
    cli::Console console;
    const auto report = cli::end_run(console, remote, killfile, std::chrono::seconds(1));
    ASSERT_EQ(report.results.size(), 1U);
    EXPECT_TRUE(report.ended >= 0 && report.forced >= 0) << text;
    EXPECT_EQ(report.none_left, report.results[0].failure == ssh::Failure::none) << text;
    report.none_left ? ++proven : ++doubted;
    if (!report.none_left) {
      EXPECT_FALSE(report.results[0].error.empty()) << text;
      return;
    }
    const auto reply = ssh::read_reply<host::KillReply>(remote.answers[0]);
    EXPECT_TRUE(reply.left.empty() && reply.job_left.empty()) << text;
    if (!reply.vouched_for.empty()) return;  // by a scheduler, for all hosts
    EXPECT_TRUE(reply.no_folder.empty()) << text;
    const auto found = killfiles::parse_identity(reply.host);
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(compare(killfile.machines[0].identity, *found), killfiles::Likeness::same) << text;
  });
  EXPECT_GT(proven, 50);
  EXPECT_GT(doubted, 50);
}

TEST(AnswersFuzz, ARecordIsReadOrRefused) {
  cli::RunRecord good;
  good.run_id = "x_1";
  good.program = {"python3", "train.py"};
  good.code.diff = "diff --git a/x b/x\n";
  good.machines.emplace_back().gpus = {"NVIDIA H100, 81559 MiB"};
  good.end.emplace().metrics = {{"loss", 0.5}};
  fuzz::Mutator mutator({cli::to_text(good)}, {"[[[[", "{", "null", "-1", "1e99", "\"", ",", "}"});
  const auto tally = fuzz::feed<std::runtime_error>(mutator, 4000, [](const std::string& text) {
    const cli::RunRecord record = cli::parse_record(text, "record.json");
    EXPECT_TRUE(killfiles::is_run_id(record.run_id)) << text;
    EXPECT_FALSE(cli::to_json(record)
                     .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                     .empty());
  });
  EXPECT_GT(tally.taken, 0);
  EXPECT_GT(tally.refused, 0);
}

TEST(AnswersFuzz, ACheckFindsNumbersAndSaysWhatIsLacking) {
  host::CheckReply good;
  good.gpus = 2;
  good.port = 20123;
  good.coordinator_port = 20124;
  good.address = "10.0.0.1";
  good.trainer = "/usr/bin/dtool-trainer";
  good.trainer_version = "dtool-trainer 9.8.7";
  good.is_environment_ready = true;
  good.hardware.gpus = {"NVIDIA H100, 81559 MiB"};
  good.survey.emplace();
  host::CheckReply bad = good;
  bad.gpu_lack = "this host has no GPU 7";
  bad.lacks = {{"screen", "$(id)"}, "4.2", "no sockets", "/root: no locks", false, "dnf"};
  bad.missing_code = "~/code";
  bad.is_port_taken = true;
  bad.experiment_fault = "dtool-trainer: experiment:3:1: what hint: so";
  bad.environment = "launcher_lack=no srun\nlauncher_hint=load slurm\nbad_activate=oh\n";
  fuzz::Mutator mutator({host::to_frame(good), host::to_frame(bad)}, kTokens);
  cli::Needs needs;
  needs.run_id = "x_1";
  needs.code_folders = {"~/code"};
  int well = 0;
  int lacking = 0;
  fuzz::feed(mutator, 2000, [&](const std::string& text) {
    tests::FakeRemote remote("h1");
    remote.answers[0] = result_of(text);
    needs.trainer = (well + lacking) % 2 == 0;  // the same text comes often
    cli::Console console;
    const cli::Checked checked = cli::check_hosts(console, remote, needs).at(0);
    checked.result.ok() ? ++well : ++lacking;
    EXPECT_TRUE(checked.result.ok() || !checked.result.error.empty()) << text;
    EXPECT_TRUE(checked.gpus >= 0 && checked.gpus <= 1024) << text;
    // A hint may be pasted into a terminal: of a host's words none is in a command.
    if (checked.result.hint.find("install") != std::string::npos) {
      EXPECT_EQ(checked.result.hint.find("$("), std::string::npos) << text;
    }
    EXPECT_FALSE(cli::facts_of(checked, needs, 0).empty()) << text;
  });
  EXPECT_GT(well, 50);
  EXPECT_GT(lacking, 50);
}

TEST(AnswersFuzz, ATrialOfAListenerBelievesNoHostMoreThanItsWord) {
  fuzz::Mutator first({host::to_frame(host::ListenReply{4711, "", "eth0"}),
                       host::to_frame(host::ListenReply{0, "Address already in use", ""})},
                      kTokens);
  fuzz::Mutator second({host::to_frame(host::HostClock{1'795'390'571'500'000'000}) +
                            host::to_frame(host::ReachReply{true, "", "eth0"}),
                        host::to_frame(host::HostClock{0}) +
                            host::to_frame(host::ReachReply{false, "no answer", ""})},
                       kTokens);
  cli::TrialPlan plan;
  plan.address = "10.0.0.1";
  plan.port = 20123;
  plan.hosts = {0, 1};
  int reached = 0;
  for (int i = 0; i < fuzz::rounds(1000); ++i) {
    tests::FakeRemote remote("h[1-2]");
    remote.answers[0] = result_of(first.next());
    remote.answers[1] = result_of(second.next());
    cli::Console console;
    const cli::ListenerTrial trial = cli::try_listener(console, remote, plan);
    ASSERT_EQ(trial.hosts.size(), 2U);
    reached += trial.hosts[1].reached ? 1 : 0;
    for (std::size_t host = 0; host < 2; ++host)
      EXPECT_FALSE(cli::facts_of(trial, host).empty() && trial.listened) << remote.answers[0].out;
    // What the first host says goes into no script for another.
    for (std::size_t round = 1; round < remote.rounds.size(); ++round)
      EXPECT_EQ(remote.input_of(1, round).find("$(id)"), std::string::npos);
  }
  EXPECT_GT(reached, 10);
}

}  // namespace
}  // namespace dtool
