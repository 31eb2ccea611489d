// SPDX-License-Identifier: MIT
// Which folders `dtool fetch` asks for, and into which it refuses to write.
#include "cli/copy/fetch_plan.h"

#include <gtest/gtest.h>

#include "cli/action.h"
#include "cli/record/recorded.h"
#include "tests/unit/temporary_folder.h"

namespace dtool::cli {
namespace {

killfiles::Machine machine(int id, const std::string& log, const std::string& output) {
  return {id, "h" + std::to_string(id), "session", "~/.dtool/runs/r/machine", log, output};
}

killfiles::Killfile two_machines() {
  killfiles::Killfile killfile;
  killfile.run_id = "r";
  killfile.machines = {machine(0, "~/o/machine0.log", "~/o"),
                       machine(1, "~/o/machine1.log", "~/o")};
  return killfile;
}

TEST(ChooseMachines, AMachineIsNamedByItsIdOrItsHost) {
  killfiles::Killfile run = two_machines();
  run.machines[1].host = "ann@h1:2222";
  EXPECT_EQ(choose_machines(run, {}), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(choose_machines(run, {"1", "1"}), (std::vector<std::size_t>{1}));
  EXPECT_EQ(choose_machines(run, {"h0"}), (std::vector<std::size_t>{0}));
  EXPECT_EQ(choose_machines(run, {"h1", "0"}), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(choose_machines(run, {"ann@h1:2222"}), (std::vector<std::size_t>{1}));
  for (const char* word : {"2", "h2", "h", "", "-1", "01"})
    EXPECT_THROW(choose_machines(run, {word}), UsageError) << word;
}

TEST(FetchPlan, ALogElsewhereIsFetchedTooAndOneInTheOutputsOnlyOnce) {
  EXPECT_EQ(sources_of(machine(0, "~/o/machine0.log", "~/o"), {}).size(), 1U);
  const auto apart = sources_of(machine(0, "/var/log/r.log", "~/o"), {"*.pt"});
  ASSERT_EQ(apart.size(), 2U);
  EXPECT_EQ(apart[0].only, std::vector<std::string>{"*.pt"});
  EXPECT_EQ(apart[1].folder, "/var/log");
  EXPECT_EQ(apart[1].file, "r.log");
  const auto set_up = sources_of(machine(0, "~/log_dtool_distributed_config", ""), {});
  ASSERT_EQ(set_up.size(), 1U);
  EXPECT_EQ(set_up[0].folder, "~");
  EXPECT_EQ(set_up[0].file, "log_dtool_distributed_config");
  EXPECT_THROW(sources_of(machine(0, "", ""), {}), UsageError);
}

TEST(FetchPlan, AFolderIsNeverFetchedIntoItself) {
  const tests::TemporaryFolder folder;
  const auto outputs = folder.path() / "outputs";
  const tree_sync::Source source{outputs.string()};
  EXPECT_THROW(require_apart(source, outputs), UsageError);
  EXPECT_THROW(require_apart(source, outputs / "machine0"), UsageError);
  EXPECT_THROW(require_apart(source, folder.path()), UsageError);
  EXPECT_NO_THROW(require_apart(source, folder.path() / "outputs2/machine0"));
}

TEST(FetchPlan, WhatHasComeCountsForTheLimit) {
  EXPECT_EQ(still_allowed(std::nullopt, 5), std::nullopt);
  EXPECT_EQ(still_allowed(0.002, 0), 2'000'000U);
  EXPECT_EQ(still_allowed(0.002, 1'999'999), 1U);
  EXPECT_EQ(still_allowed(0.002, 2'000'001), 0U);
}

TEST(FetchPlan, AmountsAndBarsAreShort) {
  EXPECT_EQ(size_text(999), "999 B");
  EXPECT_EQ(size_text(300'123), "300.1 kB");
  EXPECT_EQ(size_text(999'950'000), "1.0 GB");
  EXPECT_EQ(bar(0), "[--------------------]   0%");
  EXPECT_EQ(bar(0.5), "[##########----------]  50%");
  EXPECT_EQ(bar(1), "[####################] 100%");
}

}  // namespace
}  // namespace dtool::cli
