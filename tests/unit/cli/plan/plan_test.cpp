// SPDX-License-Identifier: MIT
// A run's plan: ranks, folders, and a script for each machine.
#include "cli/plan/plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "cli/action.h"
#include "cli/engines/engine.h"
#include "ssh/host/session/supervision.h"
#include "tests/unit/syntax.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

using tests::syntax_fault;

RunPlan plan_of(const std::vector<int>& processes) {
  RunPlan plan;
  plan.run_id = "mnist_20260101-000000-abc123";
  plan.seed = 18446744073709551615U;
  plan.address = "10.0.0.1";
  plan.port = 29500;
  plan.output_dir = "experiment_output";
  for (const int count : processes) {
    MachinePlan machine;
    machine.id = static_cast<int>(plan.machines.size());
    machine.host = ssh::parse_host("h" + std::to_string(machine.id));
    machine.code_folder = "~/code";
    machine.processes = count;
    plan.machines.push_back(machine);
  }
  number_ranks(plan);
  return plan;
}

TEST(RunPlan, RanksGoOnFromMachineToMachineHoweverUnevenTheyAre) {
  const RunPlan plan = plan_of({3, 1, 4, 2});
  std::vector<int> first;
  for (const MachinePlan& machine : plan.machines) first.push_back(machine.first_rank);
  EXPECT_EQ(first, (std::vector<int>{0, 3, 4, 8}));
  EXPECT_EQ(plan.world_size, 10);
}

TEST(RunPlan, NumberingAgainGivesTheSame) {
  RunPlan plan = plan_of({2, 2});
  number_ranks(plan);
  EXPECT_EQ(plan.world_size, 4);
  EXPECT_EQ(plan.machines[1].first_rank, 2);
}

TEST(RunPlan, TheOutputFolderIsInTheCodeFolderUnlessItIsAnchored) {
  RunPlan plan = plan_of({1});
  const std::string& id = plan.run_id;
  EXPECT_EQ(output_folder(plan, plan.machines[0]), "~/code/experiment_output/" + id);
  plan.output_dir = "/data/out";
  EXPECT_EQ(output_folder(plan, plan.machines[0]), "/data/out/" + id);
  plan.output_dir = "~/out";
  EXPECT_EQ(output_folder(plan, plan.machines[0]), "~/out/" + id);
}

TEST(RunPlan, ARunThatGoesOnFromOthersHasTheFirstOnesFolderAndLogsOfItsOwn) {
  RunPlan plan = plan_of({1});
  plan.chain = {"first", "second"};
  EXPECT_EQ(output_folder(plan, plan.machines[0]), "~/code/experiment_output/first");
  EXPECT_EQ(name_job(plan, plan.machines[0]).log,
            "~/code/experiment_output/first/machine0." + plan.run_id + ".log");
}

/// What is started for the machine over SSH.
ssh::ScreenJob make_job(const RunPlan& plan, const MachinePlan& machine) {
  return make_ssh_engine()->jobs(plan)[static_cast<std::size_t>(machine.id)].job;
}

TEST(MakeJob, NamesSessionStateAndLogAfterRunAndMachine) {
  const RunPlan plan = plan_of({1, 1});
  const ssh::ScreenJob job = make_job(plan, plan.machines[1]);
  EXPECT_EQ(job.run_id, plan.run_id);
  EXPECT_EQ(job.session, "dtool_" + plan.run_id + "_machine1");
  EXPECT_EQ(job.state_folder, "~/.dtool/runs/" + plan.run_id + "/machine1");
  EXPECT_EQ(job.log, "~/code/experiment_output/" + plan.run_id + "/machine1.log");
}

TEST(MakeJob, BashReadsTheScriptWhateverThePathsAndWordsHold) {
  for (const std::string awkward :
       {"it's", "a b", "$(id)", "\"", "-x", "a\nb", ";", "}", "ü", "`", "\\", "#", "((", "EOF"}) {
    RunPlan plan = plan_of({2, 1});
    plan.program = {awkward, awkward};
    plan.environment.activate = "~/" + awkward;
    plan.output_dir = awkward;
    plan.address = awkward;
    plan.variables = {{"A", awkward}, {"B", ""}};
    plan.experiment = "x = '''" + awkward + "'''";
    for (MachinePlan& machine : plan.machines) {
      machine.code_folder = "~/" + awkward;
      EXPECT_EQ(syntax_fault(make_job(plan, machine).script), "") << awkward;
      machine.trainer = "/opt/" + awkward;
      machine.pytorch = "/opt/" + awkward;
      const ssh::ScreenJob job = make_job(plan, machine);
      EXPECT_EQ(syntax_fault(job.script), "") << awkward;
      EXPECT_EQ(syntax_fault(job.script), "") << awkward;
    }
  }
}

const std::string kAsInASession =
    "export DTOOL_HOST=" DTOOL_HOST_FILE " DTOOL_RUN_ID=mnist_20260101-000000-abc123\n";

/// The script of machine 0, run here in an empty folder.
std::string run_job(RunPlan plan, std::size_t machine = 0) {
  const tests::TemporaryFolder folder;
  for (MachinePlan& each : plan.machines) each.code_folder = folder.path().string();
  plan.output_dir = (folder.path() / "out put's").string();
  return tests::run_bash(kAsInASession + make_job(plan, plan.machines[machine]).script);
}

TEST(MakeJob, EachProcessGetsItsRankAndTheWordsUnchanged) {
  RunPlan plan = plan_of({1, 2});
  plan.machines[0].processes = 3;
  number_ranks(plan);
  // One line a process, so that those of two are not mixed: %q writes the line end as $'\n'.
  plan.program = {
      "bash", "-c",
      "printf '%s %q %q\\n' \"$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK "
      "$MASTER_ADDR:$MASTER_PORT $DTOOL_SEED\" \"$1\" \"$V\"",
      "x", "a  'b'\n$c"};
  plan.variables = {{"V", "q\"'$x  y"}};
  const std::string tail = R"( 1 10.0.0.1:29500 18446744073709551615 $'a  \'b\'\n$c' q\"\'\$x\ \ y)"
                           "\n";
  const std::string said = run_job(plan, 1);
  for (const std::string rank : {"3/5 0/2", "4/5 1/2"})
    EXPECT_NE(said.find(rank + tail), std::string::npos) << said;
}

/// What machine 1 of two with two processes each says, sorted.
std::string said_by_two_ranks(RunPlan plan) {
  return tests::run_bash("sort <<'END'\n" + run_job(std::move(plan), 1) + "END\n");
}

TEST(MakeJob, EachProcessKnowsItsPlaceByTheNamesOfTorchrunAndJax) {
  RunPlan plan = plan_of({2, 2});
  plan.program = {"sh", "-c",
                  "echo $ROLE_RANK/$ROLE_WORLD_SIZE $NODE_RANK/$GROUP_WORLD_SIZE "
                  "$TORCHELASTIC_RUN_ID $JAX_COORDINATOR_ADDRESS"};
  const std::string tail = " 1/2 " + plan.run_id + " 10.0.0.1:29500\n";
  EXPECT_EQ(said_by_two_ranks(plan), "2/4" + tail + "3/4" + tail);
}

TEST(MakeJob, PlaceholdersAreFilledOnlyIfAsked) {
  RunPlan plan = plan_of({2, 2});
  plan.program = {"echo",
                  "{rank}.{local_rank}.{world_size}",
                  "{machine_id}/{machines}",
                  "{listener}={ip}:{port}",
                  "{seed}{x}{}",
                  "{run_id}"};
  const std::string as_given =
      "{rank}.{local_rank}.{world_size} {machine_id}/{machines} "
      "{listener}={ip}:{port} {seed}{x}{} {run_id}\n";
  EXPECT_EQ(said_by_two_ranks(plan), as_given + as_given);
  plan.fill = true;
  const std::string tail =
      ".4 1/2 10.0.0.1:29500=10.0.0.1:29500 18446744073709551615{x}{} " + plan.run_id + "\n";
  EXPECT_EQ(said_by_two_ranks(plan), "2.0" + tail + "3.1" + tail);
}

TEST(MakeJob, WithoutARendezvousAProcessHasNoVariablesOfOne) {
  RunPlan plan = plan_of({2, 2});
  plan.rendezvous = "never";
  plan.program = {"sh", "-c", "env | grep -E 'RANK|WORLD_SIZE|MASTER_|ELASTIC|JAX_' || echo none"};
  EXPECT_EQ(said_by_two_ranks(plan), "none\nnone\n");
}

TEST(MakeJob, IndependentProcessesAreEachAJobOfItsOwn) {
  RunPlan plan = plan_of({2, 2});
  plan.rendezvous = "independent";
  plan.fill = true;
  plan.program = {"sh", "-c",
                  "echo {rank}: $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE "
                  "$MASTER_ADDR:$MASTER_PORT; [ {rank} = 3 ] || { sleep 1; echo went on; }; "
                  "[ {rank} != 3 ] || exit 3"};
  const std::string said = run_job(plan, 1);
  for (const std::string part :
       {"2: 0/1 0/1 127.0.0.1:0\n", "3: 0/1 0/1 127.0.0.1:0\n", "went on\n", "exit code 3\n"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(MakeJob, AProcessTakesItsShareOfTheCoresUnlessSomebodyChose) {
  RunPlan plan = plan_of({1});
  plan.program = {"sh", "-c", "echo threads: $OMP_NUM_THREADS"};
  plan.machines[0].threads = 3;
  EXPECT_EQ(run_job(plan), "threads: 3\n");
  plan.variables = {{"OMP_NUM_THREADS", "2"}};
  EXPECT_EQ(run_job(plan), "threads: 2\n");
}

TEST(MakeJob, AProcessKnowsAfterWhichSilenceItsMachineIsLost) {
  RunPlan plan = plan_of({1});
  plan.program = {"sh", "-c", "echo $DTOOL_LOST_AFTER"};
  EXPECT_EQ(run_job(plan), "60\n");
  plan.lost_after = 600;
  EXPECT_EQ(run_job(plan), "600\n");
}

TEST(MakeJob, AProcessHasTheNicenessOfTheRun) {
  RunPlan plan = plan_of({1});
  plan.program = {"sh", "-c", "nice"};
  plan.nice = 19;
  EXPECT_EQ(run_job(plan), "19\n");
}

TEST(MakeJob, TheExitCodeOfASingleProcessCounts) {
  RunPlan plan = plan_of({1});
  plan.program = {"sh", "-c", "echo rank $RANK; exit 7"};
  EXPECT_EQ(run_job(plan), "rank 0\nexit code 7\n");
}

TEST(MakeJob, TheFirstProcessThatFailsIsNamedAndEndsTheOthers) {
  RunPlan plan = plan_of({3});
  plan.program = {"sh", "-c", "[ $RANK = 1 ] && exit 9; exec sleep 60"};
  const std::string said = run_job(plan);
  EXPECT_NE(said.find("dtool: rank 1 on machine 0 ended with exit code 9"), std::string::npos)
      << said;
  EXPECT_TRUE(said.ends_with("exit code 9\n")) << said;
}

TEST(MakeJob, AProcessThatStoppedForOthersIsNotTheFirstToFail) {
  RunPlan plan = plan_of({2});
  plan.program = {"sh", "-c",
                  "if [ $RANK = 1 ]; then sleep 0.3; exit 5; fi;"
                  "echo 'rank 1 is gone' > $DTOOL_LAST_WORDS; exit 3"};
  const std::string said = run_job(plan);
  EXPECT_NE(said.find("dtool: rank 1 on machine 0 ended with exit code 5\n"), std::string::npos)
      << said;
  EXPECT_TRUE(said.ends_with("exit code 5\n")) << said;
  plan = plan_of({1});
  plan.program = {"sh", "-c", "echo 'rank 1 is gone' > $DTOOL_LAST_WORDS; exit 3"};
  EXPECT_EQ(run_job(plan), "dtool: rank 1 is gone\nexit code 3\n");
}

TEST(MakeJob, SignalsAreHandedOnToTheProcesses) {
  RunPlan plan = plan_of({2});
  plan.program = {"bash", "-c",
                  "trap 'echo got TERM; exit 6' TERM; trap 'echo got USR1' USR1; sleep 1\n"
                  "[ $RANK = 0 ] || kill -USR1 $PPID; sleep 0.5\n"
                  "[ $RANK = 0 ] || kill -TERM $PPID; sleep 1; exit 7"};
  const std::string said = run_job(plan);
  const auto count = [&said](std::string_view words) {
    std::size_t times = 0;
    for (auto at = said.find(words); at != said.npos; at = said.find(words, at + 1)) ++times;
    return times;
  };
  EXPECT_EQ(count("got USR1\n"), 2U) << said;
  EXPECT_EQ(count("got TERM\n"), 2U) << said;
  EXPECT_TRUE(said.ends_with("exit code 6\n")) << said;
}

TEST(MakeJob, AnAttemptWithoutAMachineLeavesNoGapInTheRanks) {
  RunPlan plan = plan_of({1, 3, 2});
  plan.program = {"bash", "-c", "echo \"$RANK/$WORLD_SIZE $GROUP_RANK $DTOOL_ATTEMPT\""};
  for (MachinePlan& each : plan.machines) each.code_folder = "/";
  const tests::TemporaryFolder output;
  plan.output_dir = output.path().string();
  const std::string script = make_job(plan, plan.machines[2]).script;
  const std::string said = tests::run_bash(kAsInASession + "set -- 1 0 2\n" + script);
  for (const std::string rank : {"1/3 1 1\n", "2/3 1 1\n"})
    EXPECT_NE(said.find(rank), std::string::npos) << said;
}

TEST(MakeJob, OnlyWhatIsToBeStoppedIsSupervised) {
  RunPlan plan = plan_of({1, 1});
  const auto has = [&plan](std::size_t machine, const std::string& name) {
    const auto files = make_job(plan, plan.machines[machine]).files;
    return std::ranges::count(files, name, [](const auto& file) { return file.first; }) == 1;
  };
  EXPECT_TRUE(has(0, "supervise") && has(1, "supervise"));
  plan.on_failure = RunPlan::kLeave;
  EXPECT_FALSE(has(0, "supervise") || has(1, "supervise"));
}

TEST(MakeJob, TheSessionOfAMachineReadsWhatItIsTold) {
  RunPlan plan = plan_of({1, 1});
  plan.coordinator_port = 29501;
  plan.max_restarts = 2;
  plan.lost_after = 9;
  plan.machines[1].trainer = "/opt/trainer";
  const auto told = [&plan](std::size_t machine) {
    for (const auto& [name, content] : make_job(plan, plan.machines[machine]).files) {
      if (name == "supervise") return host::parse_supervision(content);
    }
    throw std::runtime_error("nothing");
  };
  const host::Supervision first{0,          "h0",  2,           2, std::chrono::seconds(9),
                                "10.0.0.1", 29501, {"h0", "h1"}};
  const host::Supervision second{1, "h1", 2, 2, std::chrono::seconds(9), "10.0.0.1", 29501, {}};
  EXPECT_EQ(told(0), first);
  EXPECT_EQ(told(1), second);
}

TEST(MakeJob, WhatAMachineIsToldDoesNotGrowWithTheNumberOfMachines) {
  const auto size_of = [](const RunPlan& plan, std::size_t machine) {
    const ssh::ScreenJob job = make_job(plan, plan.machines[machine]);
    std::size_t size = job.script.size();
    for (const auto& [name, content] : job.files) size += content.size();
    return size;
  };
  const RunPlan few = plan_of(std::vector<int>(3, 8));
  const RunPlan many = plan_of(std::vector<int>(1000, 8));
  EXPECT_LT(size_of(many, 2), size_of(few, 2) + 100);
  // Machine 0 knows all by name, since it tells which of them failed.
  EXPECT_LT(size_of(many, 0), size_of(few, 0) + 15'000);
}

TEST(MakeJob, WhereActivatingFailsNothingIsRun) {
  const tests::TemporaryFolder folder;
  RunPlan plan = plan_of({1});
  plan.environment.activate = folder.write("activate", "return 3\n").string();
  plan.program = {"echo", "ran"};
  const std::string said = run_job(plan);
  EXPECT_EQ(said, "dtool: " + plan.environment.activate + " failed\nexit code 1\n");
}

TEST(MakeJob, TheTrainerGetsItsFlags) {
  const tests::TemporaryFolder folder;
  RunPlan plan = plan_of({2});
  const std::filesystem::path trainer =
      folder.write("train er", "#!/bin/sh\nprintf '<%s>' \"$@\" \"${DTOOL_PYTORCH-none}\"\n");
  std::filesystem::permissions(trainer, std::filesystem::perms::owner_all);
  plan.machines[0].trainer = trainer.string();
  plan.address = "fe80::1";
  const std::string said = run_job(plan);
  EXPECT_NE(said.find("/experiment.toml><--seed><18446744073709551615><--output_dir>"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("<none>"), std::string::npos) << said;
  plan.machines[0].pytorch = "/a venv/torch";
  EXPECT_NE(run_job(plan).find("</a venv/torch>"), std::string::npos);
}

TEST(MakeJob, WhatGoesOnFromAnEarlierRunIsTold) {
  const tests::TemporaryFolder folder;
  RunPlan plan = plan_of({1});
  plan.program = {"sh", "-c", "echo \"from ${DTOOL_RESUME_FROM-nowhere}\""};
  EXPECT_NE(run_job(plan).find("from nowhere"), std::string::npos);
  plan.chain = {"first"};
  EXPECT_NE(run_job(plan).find("/out put's/first\n"), std::string::npos);
  const std::filesystem::path trainer =
      folder.write("trainer", "#!/bin/sh\nprintf '<%s>' \"$@\"\n");
  std::filesystem::permissions(trainer, std::filesystem::perms::owner_all);
  plan.program = {};
  plan.machines[0].trainer = trainer.string();
  EXPECT_NE(run_job(plan).find("<--checkpoint><latest>"), std::string::npos);
  plan.chain = {};
  EXPECT_EQ(run_job(plan).find("--checkpoint"), std::string::npos);
}

TEST(NameOfProgram, IsThatOfThePythonScript) {
  EXPECT_EQ(name_of_program({"./bin/train", "x.py"}), "train");
  EXPECT_EQ(name_of_program({"python3", "-u", "-X", "dev", "code/train.py", "--lr"}), "train");
  EXPECT_EQ(name_of_program({"train.py", "x"}), "train");
  EXPECT_EQ(name_of_program({"--log_dir", "logs", "code/train.py", "x.py"}), "train");
  EXPECT_EQ(name_of_program({"--tee", "3", "-m", "my.trainer"}), "my.trainer");
  EXPECT_EQ(name_of_program({"--no_python", "bin/tool", "--fast"}), "tool");
  EXPECT_EQ(name_of_program({"--tee", "3", "tool"}), "torchrun");
  EXPECT_EQ(name_of_program({"/usr/bin/python3.11", "-m", "my.trainer", "a"}), "my.trainer");
  EXPECT_EQ(name_of_program({"python3", "-c", "print(1)"}), "python3");
  EXPECT_EQ(name_of_program({"python3", "-m"}), "python3");
  EXPECT_EQ(script_of({"python3", "-u", "-X", "dev", "code/train.py", "--lr"}), "code/train.py");
  EXPECT_EQ(script_of({"python3", "-m", "train.py"}), std::nullopt);
  EXPECT_EQ(script_of({"python3", "-um", "my.trainer", "x.py"}), std::nullopt);
  EXPECT_EQ(module_of({"python3", "-um", "my.trainer", "x.py"}), "my.trainer");
  EXPECT_EQ(module_of({"python3", "-u", "-mmy.trainer", "x.py"}), "my.trainer");
  EXPECT_EQ(script_of({"python3", "-uc", "import x", "x.py"}), std::nullopt);
  EXPECT_EQ(script_of({"python3", "-uXdev", "x.py"}), "x.py");
  EXPECT_EQ(script_of({"python3", "-uW", "error", "x.py"}), "x.py");
  EXPECT_EQ(script_of({"python3", "--check-hash-based-pycs", "always", "x.py"}), "x.py");
  EXPECT_EQ(script_of({"./bin/train", "x.py"}), "./bin/train");
  EXPECT_EQ(script_of({"bin/train"}), "bin/train");
  for (const char* elsewhere : {"train", "/bin/train", "~/bin/train"})
    EXPECT_EQ(script_of({elsewhere, "x.py"}), std::nullopt) << elsewhere;
  EXPECT_EQ(name_of_program({"python3"}), "python3");
}

TEST(ReadsLogInFiles, ShellsThatAreToldTo) {
  for (const std::vector<std::string>& program : {std::vector<std::string>{"bash", "-lc", "x"},
                                                  {"/bin/sh", "-l", "x.sh"},
                                                  {"bash", "--login", "x.sh"},
                                                  {"bash", "-e", "-ic", "x"}})
    EXPECT_TRUE(reads_log_in_files(program)) << program[1];
  for (const std::vector<std::string>& program : {std::vector<std::string>{},
                                                  {"bash", "-c", "x", "-l"},
                                                  {"bash", "x.sh", "-l"},
                                                  {"python", "-i"},
                                                  {"bash", "--posix", "x"}})
    EXPECT_FALSE(reads_log_in_files(program));
}

TEST(ScriptOf, ShellsAreToldScriptsAfterTheirOptions) {
  EXPECT_EQ(script_of({"bash", "helo.sh", "-c"}), "helo.sh");
  EXPECT_EQ(script_of({"/bin/sh", "-eu", "+x", "code/run.sh"}), "code/run.sh");
  EXPECT_EQ(script_of({"bash", "-euo", "pipefail", "--norc", "run.sh"}), "run.sh");
  EXPECT_EQ(script_of({"bash", "-O", "extglob", "--rcfile", "rc", "run.sh"}), "run.sh");
  EXPECT_EQ(script_of({"bash", "--", "-c"}), "-c");
  EXPECT_EQ(script_of({"sh", "-", "run.sh"}), "run.sh");
  EXPECT_EQ(script_of({"bash", "-c", "echo hello"}), std::nullopt);
  EXPECT_EQ(script_of({"bash", "-lc", "echo hello"}), std::nullopt);
  EXPECT_EQ(script_of({"bash", "-s", "word"}), std::nullopt);
  EXPECT_EQ(script_of({"bash"}), std::nullopt);
}

}  // namespace
}  // namespace dtool::cli
