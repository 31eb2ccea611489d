// SPDX-License-Identifier: MIT
// A start that is interrupted is told like any other: sessions may run already.
#include "cli/run/start.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "ssh/host/messages/run.h"
#include "tests/unit/fake_remote.h"

namespace dtool::cli {
namespace {

/// Two machines, started one after the other.
struct TwoMachines : Launcher {
  std::string_view name() const override { return "two"; }
  void place(const RunFlags&, const Targets&, RunPlan&) const override {}
  bool complete(Console&, const RunFlags&, const Targets&, const std::vector<Checked>&,
                RunPlan&) const override {
    return true;
  }
  std::vector<HostJob> jobs(const RunPlan&) const override {
    return {{0, {"x_1", "x_machine0", "~/0", "~/log0", "true\n", {}}},
            {1, {"x_1", "x_machine1", "~/1", "~/log1", "true\n", {}}}};
  }
};

TEST(RunStart, AnInterruptedStartPrintsADocumentThatNamesTheRun) {
  tests::FakeRemote remote("h[1-2]");
  remote.answers[0] = tests::answered(host::to_frame(host::StartReply{"", "1 2 boot", ""}));
  remote.interrupt_before = 1;
  RunPlan plan;
  plan.run_id = "x_1";
  plan.machines.resize(2);
  killfiles::Killfile killfile;
  killfile.run_id = plan.run_id;
  killfile.machines = {{0, "h1", "x_machine0", "~/0", "~/log0", ""},
                       {1, "h2", "x_machine1", "~/1", "~/log1", ""}};
  Console console;
  ConsoleOptions options;
  options.json = true;
  console.configure(options);
  RunReport report(console, plan.run_id);
  testing::internal::CaptureStdout();
  EXPECT_EQ(start_run(console, remote, TwoMachines(), plan, killfile, {}, Follow::no, "{}", report),
            kInterrupted);
  const auto document = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(document.at("run_id"), "x_1");
  EXPECT_EQ(document.at("exit_code"), kInterrupted);
  EXPECT_EQ(document.at("machines").size(), 2U);
  EXPECT_EQ(document.at("failures").size(), 1U);
  EXPECT_EQ(document.at("failures").at(0).at("host"), "h2");
}

}  // namespace
}  // namespace dtool::cli
