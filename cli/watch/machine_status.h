// SPDX-License-Identifier: MIT
// How one machine of a recorded run is doing, in words and as JSON: for `dtool status` and
// `dtool list --state`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "killfiles/killfile.h"
#include "ssh/host.h"

namespace dtool::cli {

/// The state of a machine's part of a run. The first seven may be a scheduler's word.
enum class MachineState {
  pending,  ///< it waits in a scheduler's queue
  running,
  cancelled,      ///< the scheduler ended it, on somebody's order
  timed_out,      ///< its time limit has passed
  node_failed,    ///< a node of its job failed
  out_of_memory,  ///< it wanted more memory than its job may have
  preempted,      ///< it had to make room for another job
  exited,         ///< it ended with an exit code
  stopped,        ///< the run's supervision ended it, because another machine failed
  killed,         ///< dtool kill ended it
  lost,           ///< gone without an exit code: killed by SIGKILL, or the host was rebooted
  not_started,    ///< nothing of the run was started there, or it was deleted
  unreachable,    ///< no answer, or an unreadable one
  unproven,       ///< an answer that proves nothing: another host's, or without a run's folder
};

/// Whether something of the machine's part may still go on, or begin.
enum class Ending { open, over, unknown };

/// What a state means, whatever the machine.
struct StateMeaning {
  MachineState state;
  std::string_view name;  ///< in `--json`: `not_started`
  Ending ending;          ///< `over` once its processes are gone, too
  /// Lower is nearer to the cause of a run's failure. Machines that were told to stop by others'
  /// failure exit later; an exit code says more than a missing answer.
  int distance;
};

const StateMeaning& meaning_of(MachineState state);

/// The state's name.
std::string_view to_string(MachineState state);

/// The scheduler's state of a job, by the names that its probe uses. Nothing if it is none.
std::optional<MachineState> scheduled_state(std::string_view word);

/// The outcome of what ended well, as people are told.
inline constexpr std::string_view kEnded = "ended";

struct GpuUse {
  int index = 0;
  std::optional<int> use_percent;
  std::optional<int> memory_mib;
  std::optional<int> memory_total_mib;
};

/// The newest lines of a metrics.jsonl (training and validation); the bundled trainer averages over
/// all ranks. Values that they lack are absent.
struct TrainingProgress {
  std::int64_t epoch = 0;  ///< 0: the workload has no epochs
  std::int64_t step = 0;
  std::optional<double> loss;
  std::optional<double> samples_per_s;
  std::optional<double> train_success;  ///< share of the agents' episodes
  std::optional<double> validation_success;
  std::vector<std::pair<std::string, double>> others = {};  ///< another program's, the first three
  std::int64_t age_s = 0;                                   ///< seconds since it was written
};

/// The failure after which a run was started again, as one of its machines has noted it.
struct EarlierFailure {
  int attempt = 0;  ///< the number of the attempt that failed, counted from 0
  /// How long the machine's log was at the end of that attempt, if the machine has told it.
  std::optional<std::uint64_t> log_bytes = {};
  int machine = 0;               ///< the machine that the cause names, else the one that tells this
  std::optional<int> rank = {};  ///< the rank that the cause names; or unknown
  std::string text = {};         ///< the cause
};

/// Unknown values are absent. Ages are in seconds by the host's own clock, so that a wrong clock
/// does no harm.
struct MachineStatus {
  int id = 0;
  ssh::Host host;
  MachineState state = MachineState::unreachable;
  std::string node;  ///< the node that a scheduler chose; empty: none yet, or the host itself
  std::string job;   ///< a scheduler's id; or empty
  std::string scheduler = "Slurm";  ///< title of the scheduler that has the job
  std::string reason;  ///< a scheduler's reason for the state, or why it is unproven; or empty
  killfiles::HostIdentity recorded_host;  ///< the host where it was started; set if the state is
                                          ///< unproven
  killfiles::HostIdentity found_host;     ///< the host that answered; set likewise
  int exit_code = -1;                     ///< set if it exited
  bool was_rebooted = false;
  std::optional<std::int64_t> pid;  ///< the pid of the session's leader
  std::optional<std::int64_t> up_s;
  std::optional<std::int64_t> ended_s_ago;
  int processes = 0;  ///< the number of processes with the run's id
  std::optional<int> cpu_percent;
  std::optional<std::int64_t> memory_bytes;  ///< resident; shared pages count in each process
  std::vector<GpuUse> gpus;
  std::string last_line;  ///< the last line of the log, without control characters
  /// The last lines of the rank that failed, else of a failed machine.
  std::vector<std::string> last_lines;
  std::string cause;  ///< why the run failed, found by the run's supervision; or empty
  std::optional<int> cause_machine;               ///< the machine that the cause names; or unknown
  std::optional<int> cause_rank;                  ///< the rank that the cause names; or unknown
  std::optional<int> failed_rank;                 ///< the rank of this machine that failed first
  std::optional<EarlierFailure> earlier_failure;  ///< the newest one
  std::string said;         ///< message of the launched program about the whole run; or empty
  std::string supervision;  ///< `ok`, why this machine is not watched, or empty if it need not be
  int attempt = 0;          ///< how often the run was started again
  std::optional<TrainingProgress> progress;
  std::string metrics;     ///< newest line of training, as it stands in metrics.jsonl; or empty
  std::string validation;  ///< newest line of validation, likewise
  std::string packages;    ///< its python and the packages, a line each; empty: it runs, or unknown
  std::string simulator;   ///< its environment.json; empty: it runs, or has none
  std::optional<std::int64_t> output_s_ago;  ///< the age of its log's last change, if it runs
  /// Ranks that have written nothing for a minute, but something before; and for how long.
  std::vector<std::pair<int, std::int64_t>> silent_s;
  std::string full_disk;  ///< mount point of the disk of its log or state, if the disk is full
  std::string error;      ///< why there is no answer
  std::string hint;

  /// Its host has not answered, or with nothing that proves anything.
  bool is_silent() const { return meaning_of(state).ending == Ending::unknown; }

  /// Waiting for its turn, running, or ended with exit code 0.
  bool is_well() const {
    return state == MachineState::pending || state == MachineState::running ||
           (state == MachineState::exited && exit_code == 0);
  }
};

/// The node that a scheduler chose, else the host.
std::string place_of(const MachineStatus& status);

/// `running`, `exited 3`, `lost, rebooted`, `pending (Resources)`.
std::string state_text(const MachineStatus& status);

/// The newest progress among all machines.
std::optional<TrainingProgress> progress_of(const std::vector<MachineStatus>& machines);

nlohmann::json to_json(const MachineStatus& status);
nlohmann::json to_json(const TrainingProgress& progress);
nlohmann::json to_json(const killfiles::HostIdentity& identity);

}  // namespace dtool::cli
