// SPDX-License-Identifier: MIT
// A host's answers become a machine's state, numbers and last line.
#include "cli/watch/status_answer.h"

#include <gtest/gtest.h>

#include <sstream>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/unit/cli/watch/read_status.h"

namespace dtool::cli {
namespace {

using tests::answered;
using tests::from;
using tests::read_status;

TEST(StatusAnswer, AProcessThatIsThereRunsWhateverElseIsThere) {
  const MachineStatus status = read_status("pid=7\nup_s=65\nkilled=yes\nexit_code=3");
  EXPECT_EQ(status.state, MachineState::running);
  EXPECT_EQ(status.up_s, 65);
  EXPECT_TRUE(status.is_well());
}

TEST(StatusAnswer, AnExitCodeIsAnEnd) {
  EXPECT_TRUE(read_status("pid=7\nexit_code=0").is_well());
  const MachineStatus failed = read_status("pid=7\nexit_code=3\nended_s_ago=9");
  EXPECT_EQ(failed.state, MachineState::exited);
  EXPECT_FALSE(failed.is_well());
  EXPECT_EQ(state_text(failed), "exited 3");
  EXPECT_EQ(failed.ended_s_ago, 9);
}

TEST(StatusAnswer, ASchedulerSaysWhatBecameOfItsJob) {
  const MachineStatus waiting = read_status("job=7\nscheduler_state=pending\nreason=Resources");
  EXPECT_EQ(state_text(waiting), "pending (Resources)");
  EXPECT_TRUE(waiting.is_well());
  EXPECT_EQ(to_json(waiting)["reason"], "Resources");
  EXPECT_EQ(state_text(read_status("scheduler_state=pending\nreason=None")), "pending");
  const MachineStatus running = read_status("job=7\nnode=gpu3\nscheduler_state=running\nup_s=5");
  EXPECT_EQ(running.state, MachineState::running);
  EXPECT_EQ(place_of(running), "gpu3");
  for (const auto& [word, text] : std::map<std::string, std::string>{
           {"cancelled", "job 7 was cancelled"},
           {"timed_out", "job 7 reached its time limit"},
           {"node_failed", "a node of job 7 failed"},
           {"out_of_memory", "job 7 ran out of memory"},
           {"preempted", "job 7 had to make room for another one"},
           {"lost\nreason=JobLaunchFailure",
            "Slurm could not begin job 7 (JobLaunchFailure): do its nodes see ~/.dtool and the "
            "output folder?"},
           {"lost", "job 7 of Slurm is over and left no exit code"}}) {
    const MachineStatus ended = read_status("job=7\nscheduler_state=" + word);
    EXPECT_FALSE(ended.is_well()) << word;
    EXPECT_EQ(cause_of({ended})->text, text);
  }
  EXPECT_EQ(read_status("scheduler_state=unknown\nreason=no answer").state,
            MachineState::unreachable);
}

TEST(StatusAnswer, AnExitCodeSaysMoreThanTheScheduler) {
  EXPECT_EQ(state_text(read_status("scheduler_state=over\nexit_code=0")), "ended");
  EXPECT_EQ(state_text(read_status("scheduler_state=over\nexit_code=3")), "exited 3");
  EXPECT_EQ(state_text(read_status("scheduler_state=over\nexit_code=143\nstopped=yes")), "stopped");
  EXPECT_EQ(state_text(read_status("scheduler_state=cancelled\nkilled=yes")), "killed");
  EXPECT_EQ(state_text(read_status("scheduler_state=over")), "lost");
}

TEST(StatusAnswer, WhatTheSupervisionEndedWasStopped) {
  const MachineStatus stopped = read_status("pid=7\nexit_code=143\nstopped=yes\nattempt=2");
  EXPECT_EQ(state_text(stopped), "stopped");
  EXPECT_FALSE(stopped.is_well());
  EXPECT_EQ(stopped.attempt, 2);
  EXPECT_EQ(to_json(stopped)["exit_code"], 143);
}

TEST(StatusAnswer, AProcessThatIsGoneWithoutACodeIsLostAndAnotherBootSaysWhy) {
  EXPECT_EQ(state_text(read_status("pid=7")), "lost");
  EXPECT_EQ(state_text(read_status("pid=7\nrebooted=12")), "lost, rebooted");
  EXPECT_EQ(state_text(read_status("pid=7\nrebooted=12\nexit_code=0")), "ended");
  EXPECT_EQ(state_text(read_status("pid=7\nkilled=yes\nexit_code=143")), "killed");
}

TEST(StatusAnswer, WithoutAProcessFileNothingWasStarted) {
  EXPECT_EQ(read_status("").state, MachineState::not_started);
  EXPECT_EQ(read_status("killed=yes").state, MachineState::killed);
}

const std::string kHost = "0123456789abcdef0123456789abcdef login1 ";
const std::string kBoot = "5f0c91aa-1111-4222-8333-444455556666 4026531836";
const std::string kOtherBoot = "00000000-1111-4222-8333-444455556666 4026531836";

/// Of a machine that was started on login1.
MachineStatus status_beside_identity(const std::string& host, const std::string& answers) {
  killfiles::Machine machine = tests::recorded_machine(0);
  machine.identity = {"0123456789abcdef0123456789abcdef", "login1",
                      "5f0c91aa-1111-4222-8333-444455556666", "4026531836", ""};
  return read_statuses({{"x_1", machine}},
                       from("login", answered(tests::status_reply({answers}, host))))
      .front();
}

TEST(StatusAnswer, AnotherHostsAnswerProvesNoLoss) {
  const std::string other = "0123456789abcdef0123456789abcdef login2 " + kOtherBoot;
  for (const std::string& answers : {std::string("pid=7\nrebooted=12"), std::string(),
                                     std::string("pid=7\nkilled=yes"), std::string("pid=7")}) {
    const MachineStatus status = status_beside_identity(other, answers);
    EXPECT_EQ(state_text(status), "unproven (another host)") << answers;
    EXPECT_FALSE(status.is_well());
    EXPECT_EQ(to_json(status)["recorded_host"]["name"], "login1");
    EXPECT_EQ(to_json(status)["found_host"]["name"], "login2");
  }
  EXPECT_EQ(state_text(status_beside_identity(other, "pid=7\nexit_code=3")), "exited 3")
      << "the machine recorded that itself";
  EXPECT_EQ(state_text(status_beside_identity(other, "scheduler_state=lost")), "lost");
  EXPECT_EQ(state_text(status_beside_identity("\x1b[2J", "pid=7")), "unproven (another host)");
}

TEST(StatusAnswer, TheSameHostIsToldByItsBoot) {
  EXPECT_EQ(state_text(status_beside_identity(kHost + kBoot, "pid=7")), "lost");
  EXPECT_EQ(state_text(status_beside_identity(kHost + kOtherBoot, "pid=7\nrebooted=3")),
            "lost, rebooted");
  EXPECT_EQ(state_text(status_beside_identity(kHost + kBoot, "pid=7\nup_s=3")), "running");
}

TEST(StatusAnswer, ARunsFolderThatIsNotThereProvesNothing) {
  EXPECT_EQ(state_text(status_beside_identity(kHost + kBoot, "no_folder=yes")),
            "unproven (no folder)");
  EXPECT_EQ(state_text(read_status("no_folder=yes\nprocesses=2")), "unproven (no folder)");
  EXPECT_EQ(read_status("no_folder=yes\nprocesses=2").error,
            "the run's folder is gone; 2 of its processes are left");
  EXPECT_EQ(state_text(status_beside_identity(kHost + kOtherBoot, "no_folder=yes")), "not started")
      << "no process outlives a reboot";
}

TEST(StatusAnswer, AHostWithoutAWholeAnswerIsUnreachableAndSaysWhy) {
  const auto lost = read_statuses({{"x_1", tests::recorded_machine(0)}},
                                  from("h1", tests::failed(ssh::Failure::timed_out, "too slow")))
                        .front();
  EXPECT_EQ(lost.state, MachineState::unreachable);
  EXPECT_EQ(lost.error, "too slow");
  const auto odd = read_statuses({{"x_1", tests::recorded_machine(0)}},
                                 from("h1", answered("", 127, "bash: not found\n")))
                       .front();
  EXPECT_EQ(odd.state, MachineState::unreachable);
  EXPECT_NE(odd.error.find("bash: not found"), std::string::npos);
}

TEST(StatusAnswer, AnExitCodeThatCannotBeIsNone) {
  EXPECT_EQ(read_status("pid=7\nexit_code=-5").state, MachineState::lost);
  EXPECT_EQ(read_status("pid=7\nexit_code=99999").state, MachineState::lost);
}

TEST(StatusAnswer, AnAnswerAboutOtherMachinesIsNotRead) {
  const auto statuses =
      read_statuses({{"x_1", tests::recorded_machine(0)}, {"x_1", tests::recorded_machine(1)}},
                    from("h1", answered(tests::status_reply({"pid=7\nup_s=3"}))));
  ASSERT_EQ(statuses.size(), 2U);
  EXPECT_EQ(statuses[0].state, MachineState::unreachable);
}

TEST(StatusAnswer, GpusAreReadAlsoWhereTheyTellLittle) {
  const MachineStatus status = read_status("gpu=0, 97, 30123, 81559\ngpu=1, [N/A], 5, 9");
  ASSERT_EQ(status.gpus.size(), 2U);
  EXPECT_EQ(status.gpus[0].use_percent, 97);
  EXPECT_EQ(status.gpus[0].memory_total_mib, 81559);
  EXPECT_FALSE(status.gpus[1].use_percent);
  EXPECT_EQ(status.gpus[1].memory_mib, 5);
}

TEST(StatusAnswer, ProgressIsTheNewestLineOfTheMetricsOrNothing) {
  const auto progress =
      read_status(R"(metrics={"event": "step", "epoch": 3, "step": 120, "loss": 0.5,)"
                  R"( "samples_per_s": 1000.5})"
                  "\nmetrics_s_ago=4")
          .progress;
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->step, 120);
  EXPECT_DOUBLE_EQ(progress->samples_per_s.value(), 1000.5);
  EXPECT_EQ(progress->age_s, 4);
  EXPECT_FALSE(progress->validation_success);
  EXPECT_FALSE(read_status("metrics={\"epoch\": 3, \"st").progress);
  EXPECT_EQ(read_status(R"(metrics={"epoch": "three"})").progress->epoch, 0);
}

TEST(StatusAnswer, ProgressHasTheNewestValidationBesideTheNewestLineOfTraining) {
  const std::string validation =
      R"(validation={"event": "validation", "step": 100, "validation_success": 0.25})";
  const auto both =
      read_status(R"(metrics={"event": "step", "step": 120, "loss": 0.5, "train_success": 0.5})"
                  "\n" +
                  validation)
          .progress;
  ASSERT_TRUE(both);
  EXPECT_EQ(both->epoch, 0);
  EXPECT_EQ(both->step, 120);
  EXPECT_DOUBLE_EQ(both->train_success.value(), 0.5);
  EXPECT_DOUBLE_EQ(both->validation_success.value(), 0.25);
  const auto alone = read_status(validation).progress;
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->step, 100);
  EXPECT_FALSE(alone->loss);
}

}  // namespace
}  // namespace dtool::cli
