// SPDX-License-Identifier: MIT
// The mpi launcher: what it refuses, what mpirun is told of the hosts, and scripts that bash reads.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/action.h"
#include "cli/engines/engine.h"
#include "tests/unit/syntax.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

using tests::syntax_fault;

/// The launcher with those of its own flags.
std::unique_ptr<Engine> with_flags(std::vector<std::string> words) {
  auto engine = make_mpi_engine();
  CLI::App app;
  Options command(app);
  engine->add_options(command);
  std::ranges::reverse(words);
  app.parse(words);
  return engine;
}

/// Hosts as named, reached with that SSH configuration alone.
Targets targets_of(const std::vector<std::string>& hosts, const tests::TemporaryFolder& folder,
                   const std::string& config = "") {
  Targets targets;
  for (const std::string& host : hosts) targets.hosts.push_back(ssh::parse_host(host));
  targets.slots.resize(hosts.size());
  targets.connect.config_file = folder.write("config", config);
  return targets;
}

RunPlan plan_of(const Engine& engine, const Targets& targets) {
  RunFlags flags;
  flags.nproc_per_node = "auto";
  RunPlan plan;
  plan.run_id = "mnist_20260101-000000-abc123";
  plan.address = "10.0.0.1";
  plan.output_dir = "out";
  engine.place(flags, targets, plan);
  for (MachinePlan& machine : plan.machines) machine.code_folder = "~/code";
  number_ranks(plan);
  return plan;
}

std::string hostfile(const Engine& engine, const RunPlan& plan) {
  return engine.texts(plan).front().second;
}

TEST(Mpi, TheHostfileHasTheNamesAsTypedWithSlotsUsersAndPorts) {
  const tests::TemporaryFolder folder;
  const auto engine = make_mpi_engine();
  Targets targets = targets_of({"a", "b", "eve@c", "d:2222"}, folder,
                               "Host b\n HostName 10.9.8.7\n User bob\nHost *\n User ann\n");
  targets.slots = {2, 1, std::nullopt, 3};
  EXPECT_EQ(hostfile(*engine, plan_of(*engine, targets)),
            "localhost slots=2\nbob@b slots=1\neve@c slots=1\nd port=2222 slots=3\n");
}

TEST(Mpi, NpFillsTheSlotsInOrder) {
  const tests::TemporaryFolder folder;
  Targets targets = targets_of({"a", "b", "c"}, folder);
  targets.slots = {2, 1, 3};
  const std::vector<Checked> checked(3);
  RunFlags flags;
  flags.nproc_per_node = "auto";
  Console console;
  const auto processes = [&](const std::string& np) {
    const auto engine = with_flags({"--np", np});
    RunPlan plan = plan_of(*engine, targets);
    std::vector<int> each;
    if (!engine->complete(console, flags, targets, checked, plan)) return each;
    for (const MachinePlan& machine : plan.machines) each.push_back(machine.processes);
    return each;
  };
  EXPECT_EQ(processes("4"), (std::vector<int>{2, 1, 1}));
  EXPECT_EQ(processes("6"), (std::vector<int>{2, 1, 3}));
  EXPECT_EQ(processes("3"), std::vector<int>());  // nothing would be left for c
  EXPECT_EQ(processes("7"), std::vector<int>());
}

TEST(Mpi, TheFirstMachineIsStartedLastAndAloneStartsMpirun) {
  const tests::TemporaryFolder folder;
  const auto engine = make_mpi_engine();
  const std::vector<HostJob> jobs =
      engine->jobs(plan_of(*engine, targets_of({"a", "b", "c"}, folder)));
  ASSERT_EQ(jobs.size(), 3U);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(jobs[i].host, i);
    EXPECT_EQ(jobs[i].order, i == 0 ? StartOrder::last : StartOrder::first);
    EXPECT_EQ(jobs[i].job.script.find("start_mpirun() {") != std::string::npos, i == 0);
    const bool has_agent = std::ranges::any_of(
        jobs[i].job.files, [](const auto& file) { return file.first == "../launch_orted"; });
    EXPECT_EQ(has_agent, i != 0);
  }
}

TEST(Mpi, BashReadsItsScriptsWhateverTheWordsHold) {
  const tests::TemporaryFolder folder;
  for (const std::string awkward : {"it's", "a b", "$(id)", "\"", "a\nb", ";", "`", "\\", "(("}) {
    const auto engine = make_mpi_engine();
    RunPlan plan = plan_of(*engine, targets_of({"a", "b"}, folder));
    plan.program = {awkward, awkward};
    plan.variables = {{"A", awkward}, {"OMPI_MCA_plm_rsh_args", awkward}};
    plan.networks = {awkward};
    for (MachinePlan& machine : plan.machines) machine.code_folder = "~/" + awkward;
    for (const HostJob& each : engine->jobs(plan)) {
      EXPECT_EQ(syntax_fault(each.job.script), "") << awkward;
      for (const auto& [name, content] : each.job.files) {
        const bool is_bash = name == "rank" || name == "../launch_orted";
        EXPECT_EQ(is_bash ? syntax_fault(content) : "", "") << awkward;
      }
    }
    Needs needs;
    engine->add_needs(plan, needs);
    ASSERT_EQ(needs.engine_checks.size(), 1U);
    EXPECT_EQ(syntax_fault(needs.engine_checks[0]), "") << awkward;
  }
}

TEST(Mpi, WordsThatSayWhereProcessesRunAreRefusedAndOthersPassed) {
  const tests::TemporaryFolder folder;
  const Targets targets = targets_of({"a"}, folder);
  for (const std::string word : {"-np", "--np", "-n", "--host", "-H", "--hostfile", "--map-by"}) {
    const auto engine = with_flags({"--mpirun_arg=--mca btl self " + word + " 4"});
    EXPECT_THROW(plan_of(*engine, targets), UsageError) << word;
  }
  const auto engine = with_flags({"--mpirun_arg=--mca btl 'self,tcp'", "--mpirun_arg=-v"});
  const std::string script = engine->jobs(plan_of(*engine, targets))[0].job.script;
  EXPECT_NE(script.find("mpirun_arguments=(--mca btl self,tcp -v)\n"), std::string::npos) << script;
  EXPECT_THROW(plan_of(*with_flags({"--mpirun_arg='open"}), targets), std::invalid_argument);
}

TEST(Mpi, LocalMayOnlyBeTheFirst) {
  const tests::TemporaryFolder folder;
  const auto engine = make_mpi_engine();
  EXPECT_EQ(hostfile(*engine, plan_of(*engine, targets_of({"local", "b"}, folder))).substr(0, 18),
            "localhost slots=1\n");
  EXPECT_THROW(plan_of(*engine, targets_of({"a", "local"}, folder)), UsageError);
}

}  // namespace
}  // namespace dtool::cli
