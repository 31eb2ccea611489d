// SPDX-License-Identifier: MIT
// A start that is interrupted is told like any other: sessions may run already. One that fails ends
// what it began.
#include "cli/run/steps.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/record/recorded.h"
#include "ssh/wire/run.h"
#include "tests/unit/fake_remote.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

/// Two machines, started one after the other.
struct TwoMachines : Engine {
  std::string_view name() const override { return "two"; }
  void place(const RunFlags&, const Targets&, RunPlan&) const override {}
  bool complete(Console&, const RunFlags&, const Targets&, const std::vector<Checked>&,
                RunPlan&) const override {
    return true;
  }
  std::vector<HostJob> jobs(const RunPlan&) const override {
    return {{0, {"x_1", "x_machine0", "~/.dtool/runs/x_1/machine0", "/log0", "true\n", {}}},
            {1, {"x_1", "x_machine1", "~/.dtool/runs/x_1/machine1", "/log1", "true\n", {}}}};
  }
};

struct RunStart : testing::Test {
  void SetUp() override {
    hosts.answers[0] = tests::answered(host::to_frame(host::StartReply{"", "1 2 boot", ""}));
    ConsoleOptions options;
    options.json = true;
    console.configure(options);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
  }

  /// The exit code, and what was written.
  int start() {
    RunPlan plan;
    plan.run_id = "x_1";
    plan.machines.resize(2);
    killfiles::Killfile killfile = new_killfile(plan.run_id, {"dtool", "run"});
    killfile.machines = {{0, "h1", "x_machine0", "~/.dtool/runs/x_1/machine0", "/log0", ""},
                         {1, "h2", "x_machine1", "~/.dtool/runs/x_1/machine1", "/log1", ""}};
    RunReport report(console, plan.run_id);
    const int code =
        start_run(console, hosts, TwoMachines(), plan, killfile, {}, Follow::no, "{}", report);
    document = nlohmann::json::parse(testing::internal::GetCapturedStdout());
    errors = testing::internal::GetCapturedStderr();
    return code;
  }

  tests::TemporaryFolder home;
  tests::TemporaryVariable home_variable{"HOME", home.path()};
  Console console;
  tests::FakeRemote hosts{"h[1-2]"};
  nlohmann::json document;
  std::string errors;
};

TEST_F(RunStart, ThatIsInterruptedPrintsADocumentThatNamesTheRun) {
  hosts.interrupt_before = 1;
  EXPECT_EQ(start(), kInterrupted);
  EXPECT_EQ(document.at("run_id"), "x_1");
  EXPECT_EQ(document.at("exit_code"), kInterrupted);
  EXPECT_EQ(document.at("machines").size(), 2U);
  EXPECT_EQ(document.at("failures").size(), 1U);
  EXPECT_EQ(document.at("failures").at(0).at("host"), "h2");
}

/// No mark for later starts can be written on machine 1.
TEST_F(RunStart, ThatMayStillBeOnItsWayIsNotTakenForGone) {
  host::KillReply unmarked;
  unmarked.unmarked = "~/.dtool/runs/x_1/machine1";
  hosts.answers_to[1][0] = tests::answered(host::to_frame(host::KillReply()));
  hosts.answers_to[1][1] = tests::answered(host::to_frame(unmarked));
  hosts.answers[1] = tests::failed(ssh::Failure::connection_lost, "the connection ended");
  EXPECT_EQ(start(), kSomeFailed);
  EXPECT_NE(errors.find("so a start that is on its way may still come"), std::string::npos)
      << errors;
  EXPECT_NE(errors.find("something may still run\nhint: dtool kill x_1\n"), std::string::npos)
      << errors;
}

TEST_F(RunStart, ThatAllHostsHaveAnsweredNeedsNoMark) {
  host::KillReply unmarked;
  unmarked.unmarked = "~/.dtool/runs/x_1/machine1";
  hosts.answers_to[1][0] = tests::answered(host::to_frame(host::KillReply()));
  hosts.answers_to[1][1] = tests::answered(host::to_frame(unmarked));
  hosts.answers[1] = tests::answered(host::to_frame(host::Fault{"the disk is full"}));
  EXPECT_EQ(start(), kSomeFailed);
  EXPECT_EQ(errors.find("may still"), std::string::npos) << errors;
  EXPECT_NE(errors.find("no process of the run is left"), std::string::npos) << errors;
}

}  // namespace
}  // namespace dtool::cli
