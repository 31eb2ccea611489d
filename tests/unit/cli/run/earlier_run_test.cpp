// SPDX-License-Identifier: MIT
// What a run takes over from the one that it goes on from.
#include "cli/run/earlier_run.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/action.h"
#include "cli/engines/engine.h"
#include "cli/plan/flags.h"
#include "cli/record/record.h"
#include "cli/record/recorded.h"
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
  record.flags = {{"--nproc_per_node", {"2"}},    {"--exclude", {"a b", "*.bin"}},
                  {"--export", {"HOME", "PATH"}}, {"--distributed_ip_and_port", {"h1:1234"}},
                  {"--extra_tag", {""}},  // earlier versions took it for one that was left out
                  {"--relay", {"true"}}};
  for (const char* host : {"h1", "ann@h2:22"}) {
    RecordedMachine& machine = record.machines.emplace_back();
    machine.host = host;
    machine.processes = 3;
    machine.code_folder = "~/code";
  }
  return record;
}

/// The flags of `dtool run` with these words, after the earlier run has given its own.
class Resumed {
 public:
  explicit Resumed(const std::vector<std::string>& words, RunRecord record = record_of_run(),
                   Start start = Start::resumed)
      : earlier(std::move(record), start) {
    start == Start::rerun ? add_rerun_flags(options, flags, engine_names())
                          : add_run_flags(options, flags, engine_names());
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    app.parse(reversed);
    earlier.give_flags(options);
  }

  RunFlags flags;
  CLI::App app;
  Options options{app};
  EarlierRun earlier;
};

std::string fault_of_words(const std::vector<std::string>& words) {
  return fault_of([&] { Resumed resumed(words); });
}

TEST(EarlierRun, GivesTheFlagsTheHostsAndTheSeedOfTheEarlierRun) {
  const Resumed resumed({});
  EXPECT_EQ(resumed.flags.nproc_per_node, "2");
  EXPECT_EQ(resumed.flags.excludes, (std::vector<std::string>{"a b", "*.bin"}));
  EXPECT_EQ(resumed.flags.exports, (std::vector<std::string>{"HOME", "PATH"}));
  EXPECT_EQ(resumed.flags.hosts.runs_on, "h1,ann@h2:22");
  EXPECT_EQ(resumed.flags.run.seed, 18446744073709551615U);
  EXPECT_EQ(resumed.flags.listener, "h1:1234");
  EXPECT_EQ(resumed.flags.run.output_dir, "out");
  EXPECT_EQ(resumed.flags.run.engine, "ssh");
  EXPECT_TRUE(resumed.flags.relay);
}

TEST(EarlierRun, WhatTheUserGivesWins) {
  const Resumed resumed({"--nproc_per_node", "5", "--exclude", "c", "--export", "HOME=/x",
                         "--runs_on", "h7", "--output_dir", "o"});
  EXPECT_EQ(resumed.flags.nproc_per_node, "5");
  EXPECT_EQ(resumed.flags.excludes, (std::vector<std::string>{"c"}));
  EXPECT_EQ(resumed.flags.exports, (std::vector<std::string>{"PATH", "HOME=/x"}));
  EXPECT_EQ(resumed.flags.hosts.runs_on, "h7");
  EXPECT_EQ(resumed.flags.listener, "auto") << "it was one of the other hosts";
  EXPECT_EQ(resumed.flags.run.output_dir, "o");
}

TEST(EarlierRun, SeedAndLauncherStay) {
  EXPECT_EQ(fault_of_words({"--seed", "18446744073709551615", "--launcher", "ssh"}), "");
  EXPECT_TRUE(fault_of_words({"--seed", "3"}).starts_with("--seed must stay 184467"));
  EXPECT_TRUE(fault_of_words({"--launcher", "mpi"}).starts_with("--launcher must stay ssh"));
}

TEST(EarlierRun, AFlagThatThisVersionLacksIsNamed) {
  RunRecord record = record_of_run();
  (*record.flags)["--of_later"] = {"1"};
  const std::string fault = fault_of([&] { Resumed({}, record); });
  EXPECT_TRUE(fault.starts_with("digits_1 was started with --of_later: ")) << fault;
}

TEST(EarlierRun, RecordsFlagsButNoValuesOfExportsAndNothingOfOneCommand) {
  const GivenFlags typed = {{"--export", {"A=secret", "B"}}, {"--resume", {"x"}},
                            {"--follow", {"true"}},          {"--seed", {"3"}},
                            {"--runs_on", {"h1"}},           {"--gpus", {"0"}}};
  EXPECT_EQ(flags_to_record(typed), (GivenFlags{{"--export", {"B"}}, {"--gpus", {"0"}}}));
  EXPECT_EQ(flags_to_record({{"--export", {"A=secret"}}}), GivenFlags());
}

TEST(EarlierRun, ProcessesStayWhereTheHostsDo) {
  const auto slots = [](const std::vector<std::string>& words) {
    const Resumed resumed(words);
    Targets targets;
    targets.hosts = {ssh::parse_host("h1"), ssh::parse_host("ann@h2:22")};
    targets.slots.resize(2);
    resumed.earlier.keep_processes(targets);
    return targets.slots[1].value_or(0);
  };
  EXPECT_EQ(slots({}), 3);
  EXPECT_EQ(slots({"--gpus", "0"}), 0);
  EXPECT_EQ(slots({"--runs_on", "h1,ann@h2:22"}), 0);
}

TEST(EarlierRun, ANewHostHasTheCodeWhereTheOthersHadIt) {
  EXPECT_EQ(Resumed({}).earlier.code_folder_on(ssh::parse_host("h9")), "~/code");
  EXPECT_FALSE(Resumed({}).earlier.code_folder_on(ssh::parse_host("local")));
  EXPECT_FALSE(Resumed({"--code_path", "x"}).earlier.code_folder_on(ssh::parse_host("h1")));
}

Resumed rerun(std::vector<std::string> words, RunRecord record = record_of_run()) {
  words.insert(words.begin(), "digits_1");
  return Resumed(words, std::move(record), Start::rerun);
}

TEST(EarlierRun, ARerunMayHaveAnotherSeedButNoneOfTheFlagsAboutSending) {
  RunRecord record = record_of_run();
  record.flags->merge(GivenFlags{{"--no_sync", {"true"}}, {"--in_place", {"true"}}});
  const Resumed again = rerun({}, record);
  EXPECT_EQ(again.flags.run.seed, 18446744073709551615U);
  EXPECT_EQ(again.flags.hosts.runs_on, "h1,ann@h2:22");
  EXPECT_EQ(again.flags.excludes, std::vector<std::string>());
  EXPECT_FALSE(again.flags.no_sync || again.flags.in_place);
  EXPECT_EQ(rerun({"--seed", "3"}).flags.run.seed, 3U);
  const GivenFlags to_record = again.earlier.flags_of_rerun({{"--gpus", {"0"}}});
  EXPECT_EQ(to_record.at("--exclude"), (std::vector<std::string>{"a b", "*.bin"}));
  EXPECT_EQ(to_record.size(), 4U);
  const std::string fault = fault_of([] { rerun({"--launcher", "mpi"}); });
  EXPECT_TRUE(fault.starts_with("--launcher must stay ssh, as in digits_1")) << fault;
}

TEST(EarlierRun, ARerunHasTheSilenceOfItsRunAndAResumedRunThatOfTodaysSettings) {
  RunRecord record = record_of_run();
  record.lost_after = 300;
  record.nice = 4;
  EXPECT_EQ(rerun({}, record).flags.run.lost_after, 300);
  EXPECT_EQ(rerun({"--lost_after", "9"}, record).flags.run.lost_after, 9);
  const Resumed resumed({}, record);
  EXPECT_FALSE(resumed.flags.run.lost_after);
  EXPECT_EQ(resumed.flags.run.nice, 4);
}

TEST(EarlierRun, ARerunOfSeveralSeedsHasThemUnlessOneIsGiven) {
  RunRecord record = record_of_run();
  record.engine = "slurm";
  (*record.flags)["--seeds"] = {"1-3"};
  EXPECT_FALSE(fault_of([&] { Resumed({}, record); }).empty());
  CLI::App app;
  Options options(app);
  std::string seeds;
  RunFlags flags;
  add_rerun_flags(options, flags, engine_names());
  options.add_option("--seeds", seeds, "");
  app.parse(std::vector<std::string>{"digits_1"});
  EarlierRun(record, Start::rerun).give_flags(options);
  EXPECT_EQ(seeds, "1-3");
  EXPECT_FALSE(flags.run.seed);
}

TEST(EarlierRun, WhatWentOnFromAnotherRunIsNotRerun) {
  RunRecord record = record_of_run();
  record.chain = {"a_1", "b_2"};
  const std::string fault = fault_of([&] { const EarlierRun rerun(record, Start::rerun); });
  EXPECT_TRUE(fault.starts_with("digits_1 cannot be rerun: it went on from b_2")) << fault;
  EXPECT_NE(fault.find("dtool rerun a_1"), std::string::npos) << fault;
}

TEST(EarlierRun, AsManyOtherHostsHaveAsManyProcessesInARerun) {
  Targets targets;
  targets.hosts = {ssh::parse_host("h8"), ssh::parse_host("h9")};
  targets.slots.resize(2);
  rerun({"--runs_on", "h8,h9"}).earlier.keep_processes(targets);
  EXPECT_EQ(targets.slots[1], 3);
  targets.slots = {4, std::nullopt};
  rerun({"--hostfile", "hosts"}).earlier.keep_processes(targets);
  EXPECT_EQ(targets.slots, (std::vector<std::optional<int>>{4, 3})) << "the hostfile tells one";
}

TEST(EarlierRun, FilesOfItsFlagsAreLookedForInItsCodeAndInItsFolder) {
  const tests::TemporaryFolder scratch;
  scratch.write("then/a.txt", "");
  scratch.write("then/b.txt", "");
  scratch.write("code/a.txt", "");
  RunRecord record = record_of_run();
  record.code.folder = scratch.path() / "then";
  const Resumed again = rerun({"--env_file", "typed"}, record);
  const auto find = [&](const char* flag, const char* file) {
    return again.earlier.find_file(flag, file, scratch.path() / "code").value_or("gone").string();
  };
  EXPECT_EQ(find("--environment", "a.txt"), scratch.path() / "code/a.txt");
  EXPECT_EQ(find("--environment", "b.txt"), scratch.path() / "then/b.txt");
  EXPECT_EQ(find("--environment", "c.txt"), "gone");
  EXPECT_EQ(find("--environment", "/c.txt"), "/c.txt");
  EXPECT_EQ(find("--env_file", "typed"), "typed");
  EXPECT_EQ(again.earlier.flags_of_rerun({{"--env_file", {"typed"}}}).at("--env_file"),
            std::vector<std::string>{std::filesystem::absolute("typed")});
}

TEST(EarlierRun, VariablesWithoutAValueAreNamed) {
  RunRecord record = record_of_run();
  record.variables = {"TOKEN", "HOME", "KEY"};
  const EarlierRun earlier(record, Start::resumed);
  RunPlan plan;
  plan.variables = {{"HOME", "/"}};
  const std::string fault = fault_of([&] { earlier.require_variables(plan); });
  EXPECT_TRUE(fault.starts_with("digits_1 exported KEY, TOKEN, and values")) << fault;
  EXPECT_NE(fault.find("--export KEY=… --export TOKEN=…"), std::string::npos) << fault;
  plan.variables = {{"HOME", "/"}, {"TOKEN", ""}, {"KEY", "x"}};
  EXPECT_EQ(fault_of([&] { earlier.require_variables(plan); }), "");
}

TEST(EarlierRun, ARunIsGoneOnFromOnce) {
  const tests::TemporaryFolder home;
  const tests::TemporaryVariable variable("HOME", home.path().string());
  RunRecord record = record_of_run();
  write_record(record);
  EXPECT_EQ(EarlierRun("digits", Start::resumed).record().run_id, "digits_1")
      << "the beginning of the id is enough";
  killfiles::Killfile later;
  later.run_id = "digits_3";
  later.created = "2026-11-25T00:00:00Z";
  later.chain = {"digits_0", "digits_1"};
  killfiles::write(killfile_folder(), later);
  const std::string fault = fault_of([] { EarlierRun("digits_1", Start::resumed); });
  EXPECT_TRUE(fault.starts_with("digits_3 goes on from digits_1 already")) << fault;
  later.chain = {"digits_1", "digits_2"};
  killfiles::write(killfile_folder(), later);
  EXPECT_EQ(EarlierRun("digits_1", Start::resumed).chain(), (std::vector<std::string>{"digits_1"}));
  RunRecord forgotten = record;
  forgotten.run_id = "digits_4";
  forgotten.chain = {"digits_1"};
  write_record(forgotten);
  EXPECT_TRUE(fault_of([] {
                EarlierRun("digits_1", Start::resumed);
              }).starts_with("digits_4 goes on from digits_1"))
      << "its outputs went to the same folder, though its killfile is gone";
  forget_record("digits_4");
  record.flags.reset();
  write_record(record);
  const std::string old = fault_of([] { EarlierRun("digits_1", Start::resumed); });
  EXPECT_TRUE(old.starts_with("digits_1 cannot be resumed: an older dtool started it")) << old;
}

TEST(EarlierRun, TheLockIsHeldByOne) {
  const tests::TemporaryFolder home;
  const tests::TemporaryVariable variable("HOME", home.path().string());
  write_record(record_of_run());
  const auto lock = lock_resuming();
  EXPECT_FALSE(host::lock_file((record_folder() / "resume.lock").string(), 0).is_open());
}

}  // namespace
}  // namespace dtool::cli
