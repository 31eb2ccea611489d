// SPDX-License-Identifier: MIT
// The state of one machine of a scheduler's run. The machine is part of a queued job, or of a
// user's own allocation, in which a session starts the processes. The run's launcher has left a
// file `probe` in the state folder: a script that asks the scheduler.
#pragma once

#include <string>

#include "ssh/wire/run.h"

namespace dtool::host {

/// Whether the state folder belongs to such a machine.
bool has_probe(const std::string& state);

class ScheduledJob {
 public:
  /// `state`: the machine's state folder.
  explicit ScheduledJob(std::string state);

  /// Whether the machine runs or will run, by an answer of the scheduler that is at most 5 s old.
  bool runs();
  /// How a machine without an exit code ended: `killed`, `launch_failed`, or the scheduler's state
  /// of the job. Empty if that state says no more than that the job ended.
  std::string became();
  /// Adds what the scheduler says of the machine.
  void tell(StatusAnswer& answer);

 private:
  /// The scheduler's answer about this machine's job.
  struct Word {
    /// pending, running, completed, failed, cancelled, timed_out, node_failed, out_of_memory,
    /// preempted; lost: the scheduler does not have the job; unknown: it does not answer.
    std::string state = "lost";
    std::string start, end, reason;
    bool is_of_kernel = false;  ///< this host's kernel answered, and not the scheduler
  };

  /// `age`: how old the scheduler's last answer may be, in seconds.
  Word look(int age) const;
  void ask(int age) const;

  std::string state_;
  std::string run_;    ///< its folder
  std::string first_;  ///< the state folder of the job's first machine
  std::string title_;  ///< name of the scheduler
  std::string task_;   ///< the job's number in its array
  std::string job_;    ///< its id; empty: the scheduler has not taken it
  bool has_steps_ = false;
  std::string told_;  ///< the file with the scheduler's last answer, about all machines of the run
};

/// `dtool-host await_job STATE`: waits until the machine no longer runs, and prints became().
int await_job(const std::string& state);

}  // namespace dtool::host
