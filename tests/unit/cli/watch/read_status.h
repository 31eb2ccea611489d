// SPDX-License-Identifier: MIT
// A machine's status out of what its host answered, for tests of status and of causes.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cli/watch/status_answer.h"
#include "ssh/wire/run.h"
#include "tests/unit/fake_remote.h"

namespace dtool::tests {

inline killfiles::Machine recorded_machine(int id) {
  killfiles::Machine made;
  made.id = id;
  made.state_folder = "~/.dtool/runs/x_1/machine0";
  made.log = "~/it's a log";
  return made;
}

/// A host's answer out of lines `NAME=VALUE`; a name alone stands for yes.
inline host::StatusAnswer status_answer(const std::string& text) {
  host::StatusAnswer answer;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    const std::string name = line.substr(0, equals);
    const std::string value = line.substr(equals + 1);
    const auto number = [&value] { return std::stoll(value); };
    if (name == "pid") answer.pid = number();
    if (name == "up_s") answer.up_s = number();
    if (name == "killed") answer.is_killed = true;
    if (name == "stopped") answer.is_stopped = true;
    if (name == "rebooted") answer.was_rebooted = true;
    if (name == "no_folder") answer.lacks_run_folder = true;
    if (name == "exit_code") answer.exit_code = number();
    if (name == "ended_s_ago") answer.ended_s_ago = number();
    if (name == "attempt") answer.attempt = number();
    if (name == "supervision") answer.supervision = value;
    if (name == "cause") answer.cause.text = value;
    if (name == "cause_machine") answer.cause_machine = number();
    if (name == "cause_rank") answer.cause_rank = number();
    if (name == "failed_rank") answer.failed_rank = number();
    if (name == "failed_attempt") {
      host::FailedAttempt& failed = answer.failed_attempt.emplace();
      std::istringstream words(value);
      words >> failed.attempt >> failed.log_bytes >> failed.machine.emplace() >> failed.cause.text;
    }
    if (name == "node") answer.node = value;
    if (name == "job") answer.job = value;
    if (name == "scheduler_state") answer.scheduler_state = value;
    if (name == "reason") answer.reason = value;
    if (name == "processes") answer.processes = number();
    if (name == "cpu_percent") answer.cpu_percent = number();
    if (name == "memory_bytes") answer.memory_bytes = number();
    if (name == "said") answer.said.text = value;
    if (name == "last_line") answer.last_line.text = value;
    if (name == "line") answer.lines.push_back({value});
    if (name == "metrics") answer.metrics.text = value;
    if (name == "validation") answer.validation.text = value;
    if (name == "metrics_s_ago") answer.metrics_s_ago = number();
    if (name == "full_disk") answer.full_disk = value;
    if (name == "output_s_ago") answer.output_s_ago = number();
    if (name == "silent") {
      std::istringstream words(value);
      words >> answer.silent.emplace_back().rank >> answer.silent.back().s_ago;
    }
    if (name == "gpu") answer.gpus.push_back(value);
  }
  return answer;
}

/// What a host sends that gives these answers, in the words of status_answer().
inline std::string status_reply(const std::vector<std::string>& machines,
                                const std::string& host = {}) {
  host::StatusReply reply;
  reply.host = host;
  for (const std::string& each : machines) reply.machines.push_back(status_answer(each));
  return host::to_frame(reply);
}

/// Of the machine `id` on the host after that number.
inline cli::MachineStatus read_status(const std::string& answers, int id = 0) {
  return cli::read_statuses({{"x_1", recorded_machine(id)}},
                            from("h" + std::to_string(id + 1), answered(status_reply({answers}))))
      .front();
}

}  // namespace dtool::tests
