// SPDX-License-Identifier: MIT
// Many runs on the same hosts are asked after in one task a host, and each gets its own answer
// back.
#include "cli/watch/run_status.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ssh/host.h"
#include "ssh/wire/run.h"
#include "tests/unit/cli/watch/read_status.h"
#include "tests/unit/fake_remote.h"

namespace dtool::cli {
namespace {

using tests::answered;
using tests::failed;

killfiles::Killfile run_on(const std::string& id, const std::string& hosts) {
  killfiles::Killfile run;
  run.run_id = id;
  for (const ssh::Host& host : ssh::parse_hosts(hosts, {})) {
    const int place = static_cast<int>(run.machines.size());
    run.machines.push_back({place, ssh::to_string(host), "s", "~/" + id, "~/log", ""});
  }
  return run;
}

std::vector<Targets> targets_of(const std::vector<killfiles::Killfile>& runs) {
  std::vector<Targets> targets;
  for (const killfiles::Killfile& run : runs)
    targets.push_back(recorded_targets(run, HostOptions(), UserSettings()));
  return targets;
}

std::vector<std::vector<MachineStatus>> places_for(const std::vector<killfiles::Killfile>& runs) {
  std::vector<std::vector<MachineStatus>> states;
  for (const killfiles::Killfile& run : runs) states.emplace_back(run.machines.size());
  return states;
}

/// A host's answer for its parts, each `NAME=VALUE...`.
std::string parts(std::vector<std::string> all) {
  for (std::string& each : all) std::ranges::replace(each, ' ', '\n');
  return tests::status_reply(all);
}

TEST(RunStates, AHostOfManyRunsIsAskedOnce) {
  const std::vector runs = {run_on("first", "a,b"), run_on("second", "b,c"), run_on("third", "b")};
  const auto groups = group_hosts(targets_of(runs));
  ASSERT_EQ(groups.size(), 1U);
  const auto tasks = state_tasks(runs, groups[0]);
  ASSERT_EQ(tasks.size(), 3U);
  const std::string input = std::get<ssh::Command>(tasks[1].step).input;
  std::vector<std::string> ids;
  for (const auto& each : tests::request_of<host::StatusRequest>(input).machines)
    ids.push_back(each.run_id);
  EXPECT_EQ(ids, (std::vector<std::string>{"first", "second", "third"}));
}

TEST(RunStates, RunsWithOtherSshSettingsAreReachedApart) {
  std::vector runs = {run_on("first", "a"), run_on("second", "a"), run_on("third", "a")};
  runs[1].ssh_settings = {{"Port", "2222"}};
  const auto groups = group_hosts(targets_of(runs));
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].parts[0].size(), 2U);
  EXPECT_EQ(groups[1].parts[0].size(), 1U);
}

TEST(RunStates, EachMachineGetsItsOwnAnswer) {
  const std::vector runs = {run_on("first", "a,b"), run_on("second", "b")};
  const auto groups = group_hosts(targets_of(runs));
  auto states = places_for(runs);
  read_states(runs, groups[0],
              {answered(parts({"pid=7 up_s=5"})),
               answered(parts({"pid=8 exit_code=3", "pid=9 exit_code=0"}))},
              states);
  EXPECT_EQ(states_text(states[0]), "1 of 2 running, 1 failed");
  EXPECT_EQ(states_text(states[1]), "ended");
  EXPECT_EQ(states[0][1].id, 1);
}

TEST(RunStates, AHalfAnswerIsNone) {
  const std::vector runs = {run_on("first", "a"), run_on("second", "a")};
  const auto groups = group_hosts(targets_of(runs));
  auto states = places_for(runs);
  ssh::HostResult lost = failed(ssh::Failure::connection_lost, "the connection was lost");
  lost.out = parts({"pid=7 up_s=5", "pid=8"});
  lost.out.pop_back();
  read_states(runs, groups[0], {lost}, states);
  EXPECT_EQ(states_text(states[0]), "unreachable");
  EXPECT_EQ(states[0][0].error, "the connection was lost");
}

TEST(RunStates, AnEmptyAnswerIsNoState) {
  const std::vector runs = {run_on("first", "a")};
  const auto groups = group_hosts(targets_of(runs));
  auto states = places_for(runs);
  read_states(runs, groups[0], {answered("welcome\n", 1, "no bash here")}, states);
  EXPECT_EQ(states_text(states[0]), "unreachable");
  EXPECT_NE(states[0][0].error.find("no bash here"), std::string::npos);
}

}  // namespace
}  // namespace dtool::cli
