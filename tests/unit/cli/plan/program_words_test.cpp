// SPDX-License-Identifier: MIT
// What people mistype in a program's words, and the flags about a program.
#include "cli/plan/program_words.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cli/action.h"
#include "cli/plan/flags.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// A folder with train.py and work/deep.py, in which the test stands.
class ProgramWords : public testing::Test {
 protected:
  ProgramWords() {
    folder.write("train.py", "import mpi4py.MPI\n");
    fs::create_directories(folder.path() / "work");
    fs::create_directories(folder.path() / "model");
    fs::current_path(folder.path());
  }
  ~ProgramWords() override { fs::current_path(before); }

  static RunPlan plan_of(const Words& program, int machines = 1) {
    RunPlan plan;
    plan.program = program;
    plan.engine = "ssh";
    for (int i = 0; i < machines; ++i) {
      plan.machines.emplace_back().id = i;
      plan.machines.back().host = ssh::parse_host("h" + std::to_string(i));
    }
    return plan;
  }

  const fs::path before = fs::current_path();
  const tests::TemporaryFolder folder;
};

/// What it throws; empty: nothing.
std::string fault_of(const auto& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST_F(ProgramWords, LinesForAShellAreRefusedWithTheWordsThatWereMeant) {
  const auto said = [](const Words& program) {
    return fault_of([&] { check_program_words(plan_of(program)); });
  };
  EXPECT_NE(said({"python3 train.py"}).find("without the quotes: -- python3 train.py"),
            std::string::npos);
  EXPECT_NE(
      said({"LR=1", "python3", "x"}).find("hint: a variable is set before --: --export 'LR=1'"),
      std::string::npos);
  EXPECT_NE(said({"cd", "a"}).find("bash -c 'cd …'"), std::string::npos);
  EXPECT_NE(said({"--follow", "python3", "x"}).find("--follow is no program"), std::string::npos);
  EXPECT_NE(said({"python3", "x", "--dry_run"}).find("really start"), std::string::npos);
  for (const Words& program :
       {Words{"python3", "a b.py"}, Words{"./a b"}, Words{"env", "LR=1", "x"}})
    EXPECT_EQ(said(program), "");
}

TEST_F(ProgramWords, AScriptThatIsNotHereStopsTheRunUnlessSomethingMayMakeIt) {
  const auto said = [](const Words& program, const Words& excludes = {}) {
    return fault_of([&] { require_script(plan_of(program), excludes); });
  };
  EXPECT_EQ(said({"python3", "-u", "trian.py"}),
            "trian.py is not in this folder\nhint: did you mean train.py? one that the hosts have "
            "already: --no_sync, --exclude trian.py, or its whole path");
  EXPECT_EQ(said({"bash", "go.sh"}).substr(0, 28), "go.sh is not in this folder\n");
  EXPECT_EQ(said({"python3", "trian.py"}, {"trian.*"}), "");
  for (const Words& program :
       {Words{"python3", "train.py"}, Words{"python3", "-m", "gone.py"},
        Words{"python3", "/a/b.py"}, Words{"python3", "../x.py"}, Words{"bash", "-c", "gone.sh"},
        Words{"./gone"}, Words{"gone.py"}, Words{"python3", "gone"}})
    EXPECT_EQ(said(program), "") << program.back();
  EXPECT_EQ(said({"./trian.py"}).substr(0, 59),
            "./trian.py is not in this folder\nhint: did you mean ./train");
  RunPlan made = plan_of({"python3", "trian.py"});
  made.environment.activate = "~/activate";
  EXPECT_EQ(fault_of([&] { require_script(made, {}); }), "");
}

TEST_F(ProgramWords, AScriptThatHostsCouldNotStartStopsTheRun) {
  const auto said = [](const Words& program, const Words& excludes = {}) {
    const std::string fault = fault_of([&] { require_script(plan_of(program), excludes); });
    return fault.substr(0, fault.find('\n'));
  };
  folder.write("windows.sh", "#!/bin/bash\r\necho 1\r\n");
  folder.write("plain.sh", "echo 1\n");
  folder.write("whole.py", "#!/usr/bin/python3\r\n");
  EXPECT_EQ(said({"./plain.sh"}), "./plain.sh may not be executed");
  for (const char* file : {"windows.sh", "plain.sh"})
    fs::permissions(file, fs::perms::owner_exec, fs::perm_options::add);
  EXPECT_EQ(said({"./windows.sh"}), "./windows.sh: its lines end as on Windows");
  EXPECT_EQ(said({"bash", "windows.sh"}), "windows.sh: its lines end as on Windows");
  EXPECT_EQ(said({"python3", "train.py"}, {"*.py"}), "train.py is excluded, so it is not sent");
  EXPECT_EQ(said({"plain.sh"}),
            "plain.sh is in this folder, but a name without a slash is looked for in PATH");
  for (const Words& program : {Words{"./plain.sh"}, Words{"bash", "plain.sh"},
                               Words{"python3", "whole.py"}, Words{"./work"}})
    EXPECT_EQ(said(program), "") << program.back();
  RunPlan here = plan_of({"python3", "train.py"});
  here.machines.front().host.is_local = true;
  EXPECT_EQ(fault_of([&] { require_script(here, {"*.py"}); }), "");  // a link leads to it
}

TEST_F(ProgramWords, FlagsAndPlaceholdersThatTheProgramGetsAreTold) {
  RunPlan plan = plan_of({"python3", "train.py", "--runs-on=h1", "--follow", "-s", "{seed}"}, 2);
  RunFlags flags;
  const auto notes = notes_on_words(plan, flags);
  EXPECT_EQ(notes,
            (Words{"--runs-on stands after --, so train.py gets it, and not dtool",
                   "--follow stands after --, so train.py gets it, and not dtool",
                   "{seed} in the program's words stays as it is; --fill replaces it",
                   "train.py imports mpi4py, and --launcher ssh starts programs of one MPI rank "
                   "each; --launcher mpi makes them one program"}));
  plan.fill = true;
  plan.program = {"python3", "-c", "{seed}"};
  EXPECT_EQ(notes_on_words(plan, flags), Words{});
}

TEST_F(ProgramWords, ATagThatTheIdHasInAnotherFormIsTold) {
  RunPlan plan = plan_of({"true"});
  plan.run_id = "true_a_b_c_20261121-034512-3fa91c";
  RunFlags flags;
  flags.extra_tag = "a b/c";
  EXPECT_EQ(notes_on_words(plan, flags),
            Words{"--extra_tag 'a b/c' cannot stand in a run's id as it is: the id is "
                  "true_a_b_c_20261121-034512-3fa91c"});
  flags.extra_tag = "b_c";
  EXPECT_EQ(notes_on_words(plan, flags), Words{});
}

TEST_F(ProgramWords, WhatNoShellReadsIsTold) {
  const auto notes = [](const Words& program) { return notes_on_words(plan_of(program), {}); };
  EXPECT_EQ(notes({"echo", "out/$RANK"}),
            Words{"no shell reads $RANK; one does in: bash -c 'echo out/$RANK'"});
  EXPECT_EQ(notes({"bash", "a.sh", "&&", "ls"}),
            Words{"no shell reads &&; one does in: bash -c 'bash a.sh && ls'"});
  for (const Words& program : {Words{"bash", "-lc", "echo $RANK && ls"}, Words{"awk", "{print $1}"},
                               Words{"grep", "a|b$"}, Words{"perl", "-ne", "$X"}})
    EXPECT_EQ(notes(program), Words{});
}

TEST_F(ProgramWords, APathOfThisMachinesHomeFolderIsTold) {
  const tests::TemporaryVariable home("HOME", "/home/me");
  RunFlags flags;
  flags.run.output_dir = "/home/me/out";
  flags.code_path = "$SCRATCH/code";
  EXPECT_EQ(notes_on_words(plan_of({"true"}), flags),
            (Words{"--output_dir /home/me/out is a path of this machine's home folder; "
                   "--output_dir '~/out' (in quotes) is below the home folder of each host",
                   "--code_path $SCRATCH/code is taken as it is: no shell on the hosts replaces a "
                   "variable in it"}));
}

TEST_F(ProgramWords, ACauseThatIsKnownGetsAHint) {
  const Words program = {"python3", "work/deep.py"};
  EXPECT_NE(hint_at_cause("… DistBackendError: NCCL error", 1, program).find("--rendezvous never"),
            std::string::npos);
  EXPECT_EQ(hint_at_cause("… NCCL error", 2, program), "");
  EXPECT_EQ(hint_at_cause("ModuleNotFoundError: No module named 'model.net'", 1, program),
            "model is in the code folder, and Python looks beside work/deep.py: --export "
            "PYTHONPATH=.");
  EXPECT_EQ(hint_at_cause("ModuleNotFoundError: No module named 'other'", 1, program), "");
}

TEST_F(ProgramWords, FlagsAboutAProgramMustFitTheRun) {
  const auto said = [](const ProgramFlags& flags, RunPlan plan) {
    return fault_of([&] { take_program_flags(flags, plan); });
  };
  const RunPlan program = plan_of({"true", "{rank}"}, 2);
  EXPECT_EQ(said({true, "never", false, 1}, program), "");
  EXPECT_EQ(said({true, "", false, {}}, plan_of({})).substr(0, 24), "--fill is about a progra");
  RunPlan torchrun = program;
  torchrun.environment.torchrun = Torchrun::yes;
  EXPECT_NE(said({true, "", false, {}}, torchrun).find("torchrun gives the ranks"),
            std::string::npos);
  EXPECT_EQ(said({false, "", false, 2}, program),
            "--ends_with 2: the run has no such machine\nhint: its machines are 0 to 1");
  EXPECT_NE(said({false, "", true, 0}, program).find("let them go on"), std::string::npos);
  RunPlan plan = program;
  take_program_flags({false, "", true, {}}, plan);
  EXPECT_EQ(plan.rendezvous, "independent");
  EXPECT_EQ(plan.on_failure, RunPlan::kLeave);
}

}  // namespace
}  // namespace dtool::cli
