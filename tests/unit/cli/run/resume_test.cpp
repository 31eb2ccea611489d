// SPDX-License-Identifier: MIT
// When a run may go on from an earlier one: nothing of that may be left, or come.
#include "cli/run/earlier_run.h"

#include <gtest/gtest.h>

namespace dtool::cli {
namespace {

MachineStatus machine(const std::string& host, MachineState state, int processes = 0) {
  MachineStatus status;
  status.host = ssh::parse_host(host);
  status.state = state;
  status.exit_code = 0;
  status.processes = processes;
  return status;
}

std::string second(MachineState state, int processes = 0) {
  return why_not_ended({machine("h1", MachineState::exited), machine("h2", state, processes)});
}

TEST(WhyNotEnded, NothingIsSaidWhereAllIsOver) {
  for (const MachineState state :
       {MachineState::exited, MachineState::stopped, MachineState::killed, MachineState::lost,
        MachineState::cancelled, MachineState::timed_out})
    EXPECT_EQ(second(state), "") << to_string(state);
}

TEST(WhyNotEnded, AHostThatDoesNotAnswerSaysNothing) {
  EXPECT_EQ(second(MachineState::unreachable), "");
  EXPECT_EQ(second(MachineState::unproven), "");
}

TEST(WhyNotEnded, OneThatRunsIsTold) {
  EXPECT_EQ(second(MachineState::running, 3), "it is 1 of 2 running, 1 ended");
  EXPECT_EQ(second(MachineState::pending), "it is 1 of 2 pending, 1 ended");
}

TEST(WhyNotEnded, RanksThatOutlivedTheirSessionAreTold) {
  EXPECT_EQ(second(MachineState::lost, 1), "1 of its processes is left on h2");
  EXPECT_EQ(second(MachineState::killed, 2), "2 of its processes are left on h2");
}

TEST(WhyNotEnded, WhatMayBeginYetIsTold) {
  EXPECT_EQ(second(MachineState::not_started), "on h2 it is not started, and may begin yet");
  EXPECT_EQ(second(MachineState::preempted), "on h2 it is preempted, and may begin yet");
}

}  // namespace
}  // namespace dtool::cli
