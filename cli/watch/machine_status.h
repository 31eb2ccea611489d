// How one machine of a recorded run is doing, in words and as JSON: for `dtool status` and
// `dtool list --state`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "killfiles/host_identity.h"
#include "ssh/host.h"

namespace dtool::cli {

/// What became of it.
enum class MachineState {
  pending,  ///< in a scheduler's queue
  running,
  exited,       ///< with an exit code
  stopped,      ///< by the run's supervision, since another machine failed
  killed,       ///< by dtool kill
  lost,         ///< gone without an exit code: SIGKILL, or the host was rebooted
  not_started,  ///< nothing of the run was ever started there, or it was deleted
  cancelled,    ///< the next ones: by the scheduler, or by who told it to
  timed_out,    ///< its time limit
  node_failed,
  out_of_memory,
  preempted,
  unreachable,  ///< no answer, or none that can be read
  unproven,     ///< an answer from which nothing follows: another host's, or without a run's folder
};

/// The state's name as `--json` prints it: `not_started`.
std::string_view to_string(MachineState state);

struct GpuUse {
  int index = 0;
  std::optional<int> use_percent;
  std::optional<int> memory_mib;
  std::optional<int> memory_total_mib;
};

/// The newest lines of the bundled trainer's metrics.jsonl, averages over all ranks: of its
/// training and of its validation. What they do not tell is absent.
struct Progress {
  std::int64_t epoch = 0;  ///< 0: the workload has none
  std::int64_t step = 0;
  std::optional<double> loss;
  std::optional<double> samples_per_s;
  std::optional<double> train_success;  ///< share of the agents' episodes
  std::optional<double> validation_success;
  std::int64_t age_s = 0;  ///< seconds since it was written
};

/// What is not known is absent. Ages are seconds by the host's own clock, so that one that is set
/// wrong does no harm.
struct MachineStatus {
  int id = 0;
  ssh::Host host;
  MachineState state = MachineState::unreachable;
  std::string node;  ///< that a scheduler chose for it; empty: none yet, or it is its own host
  std::string job;   ///< a scheduler's id; or empty
  std::string scheduler = "Slurm";  ///< whose job it is, where there is one
  std::string reason;  ///< a scheduler's for the state, or why it is unproven; or empty
  killfiles::HostIdentity recorded_host;  ///< if it was started; where it is unproven
  killfiles::HostIdentity found_host;     ///< who answered; likewise
  int exit_code = -1;                     ///< where it exited
  bool was_rebooted = false;
  std::optional<std::int64_t> pid;  ///< of the session's leader
  std::optional<std::int64_t> up_s;
  std::optional<std::int64_t> ended_s_ago;
  int processes = 0;  ///< that bear the run's id
  std::optional<int> cpu_percent;
  std::optional<std::int64_t> memory_bytes;  ///< resident, shared pages counted in each process
  std::vector<GpuUse> gpus;
  std::string last_line;                ///< of the log, without control characters
  std::vector<std::string> last_lines;  ///< of a machine that failed: a few, the last one the last
  std::string cause;        ///< why the run failed, as the run's supervision found; or empty
  std::string said;         ///< what the launched program said of the whole run, or empty
  std::string supervision;  ///< `ok`, why nobody watches this machine, or empty if none should
  int attempt = 0;          ///< how often the run was started again
  std::optional<Progress> progress;
  std::string full_disk;  ///< where the disk of its log or its state is mounted, if it is full
  std::string error;      ///< why there is no answer
  std::string hint;

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

/// The newest that any machine has.
std::optional<Progress> progress_of(const std::vector<MachineStatus>& machines);

nlohmann::json to_json(const MachineStatus& status);
nlohmann::json to_json(const Progress& progress);
nlohmann::json to_json(const killfiles::HostIdentity& identity);

}  // namespace dtool::cli
