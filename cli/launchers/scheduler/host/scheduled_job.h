// The state of a run's machine whose job a scheduler runs, or whose session leads the steps of a
// Slurm allocation. The run's launcher has left a file `probe` in the state folder; it asks the
// scheduler.
#pragma once

#include <string>

#include "ssh/host/protocol.h"

namespace dtool::host {

/// Whether the state folder belongs to such a machine.
bool has_probe(const std::string& state);

class ScheduledJob {
 public:
  /// `state`: the machine's state folder.
  explicit ScheduledJob(std::string state);

  /// Whether the machine runs or will run, from an answer of the scheduler that is at most 5 s old.
  bool runs();
  /// The end of a machine that left no exit code: `killed`, or the scheduler's state of the job;
  /// empty if that is unknown.
  std::string became();
  void tell(StatusAnswer& answer);

 private:
  /// One line of what the scheduler said of the job.
  struct Word {
    /// pending, running, completed, failed, cancelled, timed_out, node_failed, out_of_memory,
    /// preempted; lost: the scheduler knows nothing of it; unknown: it does not answer.
    std::string state = "lost";
    std::string start, end, reason;
    bool is_of_kernel = false;  ///< of this host, and not the scheduler's
  };

  /// `age`: in seconds, how old the scheduler's last word may be.
  Word look(int age) const;
  void ask(int age) const;

  std::string state_;
  std::string run_;    ///< its folder
  std::string first_;  ///< the state folder of the job's first machine
  std::string title_;  ///< the scheduler's
  std::string task_;   ///< the job's number in its array
  std::string job_;    ///< empty: the scheduler has not taken it
  bool has_steps_ = false;
  std::string told_;  ///< the file with the scheduler's last words on all machines of the run
};

/// `dtool-host await_job STATE`: waits until the machine no longer runs, and prints became().
int await_job(const std::string& state);

}  // namespace dtool::host
