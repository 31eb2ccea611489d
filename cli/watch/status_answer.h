// SPDX-License-Identifier: MIT
// Asks a host about machines of recorded runs, and interprets its answers.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/watch/machine_status.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// A machine of a recorded run to ask about.
struct AskedMachine {
  std::string run_id;
  killfiles::Machine machine;
};

/// Whether to ask for more than the state and its details.
enum class Detail { brief, full };

/// Asks the host of all `machines` about them in one round trip; read_statuses() reads the answer.
ssh::Command status_command(const std::vector<AskedMachine>& machines, Detail detail);

/// The answers of one host, in the order of the questions.
std::vector<MachineStatus> read_statuses(const std::vector<AskedMachine>& machines,
                                         const ssh::HostResult& result);

// Finds out why a run failed, or an attempt of it, from the states of its machines: for
// `dtool status` and `dtool logs`.

/// Why a run failed.
struct RunCause {
  std::string text;                ///< one line that names the machine
  std::vector<std::string> lines;  ///< the last of that rank, or of that machine's log
  int machine = 0;                 ///< its id
  std::optional<int> rank = {};    ///< the rank that failed first, if it is known
  std::string where = {};          ///< `rank 3 on machine 1 (h2)`: whose lines they are
};

/// The cause that the run's supervision found, else the trainer's own message, else the machine
/// that failed first. Nothing if all is well.
std::optional<RunCause> cause_of(const std::vector<MachineStatus>& machines);

/// The newest failure after which the run was started again; `log_bytes` is of the machine that it
/// names.
std::optional<EarlierFailure> earlier_failure_of(const std::vector<MachineStatus>& machines);

// The numbers in a line of a metrics.jsonl, which any program may have written.

/// The numbers of a JSON object, those of inner ones as `eval.accuracy`; NaN for null, which stands
/// for a number that JSON has not. At most 1,000, and at most 8 levels deep.
std::vector<std::pair<std::string, double>> metric_numbers(const nlohmann::json& object);

/// The key that counts the steps of a line: `step`, `global_step`, `iteration`, `iter` or `epoch`;
/// empty: it has none.
std::string step_name(const nlohmann::json& object);

}  // namespace dtool::cli
