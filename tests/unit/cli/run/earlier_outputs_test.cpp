// SPDX-License-Identifier: MIT
// Which outputs of an earlier run go where.
#include "cli/run/earlier_run.h"

#include <gtest/gtest.h>

namespace dtool::cli {
namespace {

RunPlan plan_on(const std::vector<std::string>& hosts, const std::string& program) {
  RunPlan plan;
  plan.run_id = "later";
  plan.chain = {"first"};
  plan.output_dir = "out";
  if (!program.empty()) plan.program = {program};
  for (const std::string& host : hosts) {
    MachinePlan& machine = plan.machines.emplace_back();
    machine.id = static_cast<int>(plan.machines.size()) - 1;
    machine.host = ssh::parse_host(host);
    machine.code_folder = "~/code";
  }
  return plan;
}

RunRecord record_on(const std::vector<std::string>& hosts) {
  RunRecord record;
  record.run_id = "first";
  for (const std::string& host : hosts) {
    RecordedMachine& machine = record.machines.emplace_back();
    machine.host = host;
    machine.output_folder = "~/code/out/first";
  }
  return record;
}

/// `0>1,2` for what goes from machine 0 to machines 1 and 2.
std::vector<std::string> told(const std::vector<EarlierPart>& parts) {
  std::vector<std::string> texts;
  for (const EarlierPart& part : parts) {
    std::string& text = texts.emplace_back(std::to_string(part.from) + ">");
    for (const std::size_t to : part.to)
      text += (text.ends_with('>') ? "" : ",") + std::to_string(to);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(EarlierParts, OnTheSameHostsNothingIsBrought) {
  const RunRecord record = record_on({"h1", "h2"});
  EXPECT_EQ(told(earlier_parts(record, plan_on({"h1", "h2"}, "a"))), (Texts{"0>", "1>"}));
  EXPECT_EQ(told(earlier_parts(record, plan_on({"h1"}, "a"))), (Texts{"0>"}));
}

TEST(EarlierParts, EachMachineOfAProgramGetsThoseOfItsPlaceAndANewOneThoseOfTheFirst) {
  const RunRecord record = record_on({"h1", "h2"});
  EXPECT_EQ(told(earlier_parts(record, plan_on({"h2", "h1"}, "a"))), (Texts{"0>0", "1>1"}));
  EXPECT_EQ(told(earlier_parts(record, plan_on({"h1", "h3", "h4", "h5"}, "a"))),
            (Texts{"0>2,3", "1>1"}));
}

TEST(EarlierParts, ThoseOfTheFirstMachineServeAllIfThatIsWanted) {
  const RunRecord record = record_on({"h1", "h2"});
  const RunPlan plan = plan_on({"h1", "h2", "h3"}, "a");
  EXPECT_EQ(told(earlier_parts(record, plan, OutputsOf::first_machine)), (Texts{"0>1,2"}));
}

TEST(EarlierParts, OnlyTheFirstRankOfTheTrainerReadsThem) {
  const RunRecord record = record_on({"h1", "h2"});
  EXPECT_EQ(told(earlier_parts(record, plan_on({"h1", "h3"}, ""))), (Texts{"0>"}));
  EXPECT_EQ(told(earlier_parts(record, plan_on({"h3", "h1"}, ""))), (Texts{"0>0"}));
}

TEST(EarlierParts, AnotherFolderOnTheSameHostLacksThem) {
  RunPlan plan = plan_on({"h1"}, "");
  plan.machines[0].code_folder = "~/other";
  EXPECT_EQ(told(earlier_parts(record_on({"h1"}), plan)), (Texts{"0>0"}));
}

TEST(EarlierParts, ASchedulersMachinesShareOneFolder) {
  RunPlan plan = plan_on({"login", "login"}, "a");
  for (MachinePlan& machine : plan.machines) machine.leader = Leader::other;
  EXPECT_EQ(told(earlier_parts(record_on({"login", "login"}), plan)), (Texts{"0>"}));
}

}  // namespace
}  // namespace dtool::cli
