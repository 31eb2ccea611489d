// SPDX-License-Identifier: MIT
// What a run takes over from the one that it goes on from.
#include "cli/run/resume.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/action.h"
#include "cli/record/record.h"
#include "cli/recorded.h"
#include "cli/run/flags.h"
#include "killfiles/killfile.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

template <typename Call>
std::string fault_of(const Call& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

RunRecord record_of_run() {
  RunRecord record;
  record.run_id = "digits_1";
  record.engine = "ssh";
  record.seed = 18446744073709551615U;
  record.output_dir = "out";
  record.flags = {{"--nproc_per_node", {"2"}},
                  {"--exclude", {"a b", "*.bin"}},
                  {"--export", {"HOME", "PATH"}},
                  {"--distributed_ip_and_port", {"h1:1234"}},
                  {"--relay", {"true"}}};
  for (const char* host : {"h1", "ann@h2:22"}) {
    RecordedMachine& machine = record.machines.emplace_back();
    machine.host = host;
    machine.processes = 3;
    machine.code_folder = "~/code";
  }
  return record;
}

/// The flags of `dtool run` with these words, after a resumption has given its own.
class Resumed {
 public:
  explicit Resumed(const std::vector<std::string>& words, RunRecord record = record_of_run())
      : resumption(std::move(record)) {
    add_run_flags(options, flags);
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    app.parse(reversed);
    resumption.give_flags(options);
  }

  RunFlags flags;
  CLI::App app;
  Options options{app};
  Resumption resumption;
};

std::string fault_of_words(const std::vector<std::string>& words) {
  return fault_of([&] { Resumed resumed(words); });
}

TEST(Resumption, GivesTheFlagsTheHostsAndTheSeedOfTheEarlierRun) {
  const Resumed resumed({});
  EXPECT_EQ(resumed.flags.nproc_per_node, "2");
  EXPECT_EQ(resumed.flags.excludes, (std::vector<std::string>{"a b", "*.bin"}));
  EXPECT_EQ(resumed.flags.exports, (std::vector<std::string>{"HOME", "PATH"}));
  EXPECT_EQ(resumed.flags.hosts.runs_on, "h1,ann@h2:22");
  EXPECT_EQ(resumed.flags.seed, 18446744073709551615U);
  EXPECT_EQ(resumed.flags.listener, "h1:1234");
  EXPECT_EQ(resumed.flags.output_dir, "out");
  EXPECT_EQ(resumed.flags.launcher, "ssh");
  EXPECT_TRUE(resumed.flags.relay);
}

TEST(Resumption, WhatTheUserGivesWins) {
  const Resumed resumed({"--nproc_per_node", "5", "--exclude", "c", "--export", "HOME=/x",
                         "--runs_on", "h7", "--output_dir", "o"});
  EXPECT_EQ(resumed.flags.nproc_per_node, "5");
  EXPECT_EQ(resumed.flags.excludes, (std::vector<std::string>{"c"}));
  EXPECT_EQ(resumed.flags.exports, (std::vector<std::string>{"PATH", "HOME=/x"}));
  EXPECT_EQ(resumed.flags.hosts.runs_on, "h7");
  EXPECT_EQ(resumed.flags.listener, "auto") << "it was one of the other hosts";
  EXPECT_EQ(resumed.flags.output_dir, "o");
}

TEST(Resumption, SeedAndLauncherStay) {
  EXPECT_EQ(fault_of_words({"--seed", "18446744073709551615", "--launcher", "ssh"}), "");
  EXPECT_TRUE(fault_of_words({"--seed", "3"}).starts_with("--seed must stay 184467"));
  EXPECT_TRUE(fault_of_words({"--launcher", "mpi"}).starts_with("--launcher must stay ssh"));
}

TEST(Resumption, AFlagThatThisVersionLacksIsNamed) {
  RunRecord record = record_of_run();
  (*record.flags)["--of_later"] = {"1"};
  const std::string fault = fault_of([&] { Resumed({}, record); });
  EXPECT_TRUE(fault.starts_with("digits_1 was started with --of_later: ")) << fault;
}

TEST(Resumption, RecordsFlagsButNoValuesOfExportsAndNothingOfOneCommand) {
  const GivenFlags typed = {{"--export", {"A=secret", "B"}}, {"--resume", {"x"}},
                            {"--follow", {"true"}},          {"--seed", {"3"}},
                            {"--runs_on", {"h1"}},           {"--gpus", {"0"}}};
  EXPECT_EQ(flags_to_record(typed), (GivenFlags{{"--export", {"B"}}, {"--gpus", {"0"}}}));
  EXPECT_EQ(flags_to_record({{"--export", {"A=secret"}}}), GivenFlags());
}

TEST(Resumption, ProcessesStayWhereTheHostsDo) {
  const auto slots = [](const std::vector<std::string>& words) {
    const Resumed resumed(words);
    Targets targets;
    targets.hosts = {ssh::parse_host("h1"), ssh::parse_host("ann@h2:22")};
    targets.slots.resize(2);
    resumed.resumption.keep_processes(targets);
    return targets.slots[1].value_or(0);
  };
  EXPECT_EQ(slots({}), 3);
  EXPECT_EQ(slots({"--gpus", "0"}), 0);
  EXPECT_EQ(slots({"--runs_on", "h1,ann@h2:22"}), 0);
}

TEST(Resumption, ANewHostHasTheCodeWhereTheOthersHadIt) {
  EXPECT_EQ(Resumed({}).resumption.code_folder_on(ssh::parse_host("h9")), "~/code");
  EXPECT_FALSE(Resumed({}).resumption.code_folder_on(ssh::parse_host("local")));
  EXPECT_FALSE(Resumed({"--code_path", "x"}).resumption.code_folder_on(ssh::parse_host("h1")));
}

TEST(Resumption, VariablesWithoutAValueAreNamed) {
  RunRecord record = record_of_run();
  record.variables = {"TOKEN", "HOME", "KEY"};
  const Resumption resumption(record);
  RunPlan plan;
  plan.variables = {{"HOME", "/"}};
  const std::string fault = fault_of([&] { resumption.require_variables(plan); });
  EXPECT_TRUE(fault.starts_with("digits_1 exported KEY, TOKEN, and values")) << fault;
  EXPECT_NE(fault.find("--export KEY=… --export TOKEN=…"), std::string::npos) << fault;
  plan.variables = {{"HOME", "/"}, {"TOKEN", ""}, {"KEY", "x"}};
  EXPECT_EQ(fault_of([&] { resumption.require_variables(plan); }), "");
}

TEST(Resumption, ARunIsGoneOnFromOnce) {
  const tests::TemporaryFolder home;
  const tests::TemporaryVariable variable("HOME", home.path().string());
  RunRecord record = record_of_run();
  write_record(record);
  EXPECT_EQ(Resumption("digits").earlier().run_id, "digits_1")
      << "the beginning of the id is enough";
  killfiles::Killfile later;
  later.run_id = "digits_3";
  later.created = "2026-11-25T00:00:00Z";
  later.chain = {"digits_0", "digits_1"};
  killfiles::write(killfile_folder(), later);
  const std::string fault = fault_of([] { Resumption("digits_1"); });
  EXPECT_TRUE(fault.starts_with("digits_3 goes on from digits_1 already")) << fault;
  later.chain = {"digits_1", "digits_2"};
  killfiles::write(killfile_folder(), later);
  EXPECT_EQ(Resumption("digits_1").chain(), (std::vector<std::string>{"digits_1"}));
  RunRecord forgotten = record;
  forgotten.run_id = "digits_4";
  forgotten.chain = {"digits_1"};
  write_record(forgotten);
  EXPECT_TRUE(
      fault_of([] { Resumption("digits_1"); }).starts_with("digits_4 goes on from digits_1"))
      << "its outputs went to the same folder, though its killfile is gone";
  forget_record("digits_4");
  record.flags.reset();
  write_record(record);
  const std::string old = fault_of([] { Resumption("digits_1"); });
  EXPECT_TRUE(old.starts_with("digits_1 cannot be resumed: an older dtool started it")) << old;
}

TEST(Resumption, TheLockIsHeldByOne) {
  const tests::TemporaryFolder home;
  const tests::TemporaryVariable variable("HOME", home.path().string());
  write_record(record_of_run());
  const auto lock = lock_resuming();
  EXPECT_FALSE(host::lock_file((record_folder() / "resume.lock").string(), 0).is_open());
}

}  // namespace
}  // namespace dtool::cli
