// SPDX-License-Identifier: MIT
#include "cli/watch/cause.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/failures.h"

namespace dtool::cli {
namespace {

std::string name_of(const MachineStatus& status) {
  return fmt::format("machine {} ({})", status.id, place_of(status));
}

std::string describe_failure(const MachineStatus& status) {
  switch (status.state) {
    case MachineState::exited: {
      ssh::HostResult result;
      result.exit_code = status.exit_code;
      std::string text = fmt::format("{} ended with {}", name_of(status), describe(result));
      if (!status.full_disk.empty())
        text += fmt::format(", and its disk at {} is full", status.full_disk);
      if (!status.last_line.empty()) text += ": " + status.last_line;
      return text;
    }
    case MachineState::lost:
      if (status.was_rebooted) return name_of(status) + " was rebooted while it ran";
      if (status.reason.starts_with("JobLaunchFailure"))
        return fmt::format(
            "{} could not begin job {} ({}): do its nodes see ~/.dtool and the output folder?",
            status.scheduler, status.job, status.reason);
      if (!status.job.empty())
        return fmt::format("job {} of {} is over and left no exit code{}", status.job,
                           status.scheduler, status.reason.empty() ? "" : ": " + status.reason);
      return name_of(status) +
             " was lost: its session is gone and left no exit code (SIGKILL, or "
             "the system ended it)";
    case MachineState::unreachable:
      return fmt::format("{} cannot be asked: {}", name_of(status), status.error);
    case MachineState::unproven:
      return fmt::format("{}: {}", name_of(status), status.error);
    case MachineState::killed:
      return name_of(status) + " was ended by dtool kill";
    case MachineState::cancelled:
      return fmt::format("job {} was cancelled", status.job);
    case MachineState::timed_out:
      return fmt::format("job {} reached its time limit", status.job);
    case MachineState::node_failed:
      return fmt::format("a node of job {} failed", status.job);
    case MachineState::out_of_memory:
      return fmt::format("job {} ran out of memory", status.job);
    case MachineState::preempted:
      return fmt::format("job {} had to make room for another one", status.job);
    default:
      return fmt::format("{}: {}", name_of(status), state_text(status));
  }
}

/// Lower is nearer to the cause. Machines that were told to stop by others' failure exit later; an
/// exit code says more than a missing answer.
int rank_of(const MachineStatus& status) {
  switch (status.state) {
    case MachineState::cancelled:
    case MachineState::timed_out:
    case MachineState::node_failed:
    case MachineState::out_of_memory:
    case MachineState::preempted:
      return 0;
    case MachineState::lost:
      return status.was_rebooted ? 0 : 1;
    case MachineState::exited:
      return 2;
    case MachineState::unreachable:
    case MachineState::unproven:
      return 3;
    case MachineState::stopped:
      return 4;
    case MachineState::killed:
      return 5;
    default:
      return 6;
  }
}

bool comes_before(const MachineStatus& one, const MachineStatus& other) {
  if (rank_of(one) != rank_of(other)) return rank_of(one) < rank_of(other);
  return one.ended_s_ago.value_or(0) > other.ended_s_ago.value_or(0);
}

/// Without the lines.
std::optional<RunCause> find_cause(const std::vector<MachineStatus>& machines) {
  const MachineStatus* first = nullptr;
  for (const MachineStatus& each : machines) {
    if (each.is_well()) continue;
    if (first == nullptr || comes_before(each, *first)) first = &each;
  }
  if (first == nullptr) return std::nullopt;
  RunCause cause{describe_failure(*first), {}, first->id, first->failed_rank};
  // A cause that was found on the machine is better than one guessed from outside, except for runs
  // that a user ended.
  if (first->state == MachineState::killed) return cause;
  const auto saying = std::ranges::find_if(machines, [](const MachineStatus& each) {
    return each.state == MachineState::exited && each.exit_code != 0 && !each.said.empty();
  });
  if (saying != machines.end()) {
    cause.text = saying->said;
    cause.machine = saying->id;
    cause.rank = saying->failed_rank;
  }
  const auto supervised =
      std::ranges::find_if(machines, [](const auto& each) { return !each.cause.empty(); });
  if (supervised == machines.end() || first->was_rebooted) return cause;
  cause.text = supervised->cause;
  cause.rank.reset();
  const auto named =
      supervised->cause_machine
          ? std::ranges::find(machines, *supervised->cause_machine, &MachineStatus::id)
          : machines.end();
  if (named != machines.end()) {
    cause.machine = named->id;
    cause.rank = supervised->cause_rank;
  }
  if (!first->full_disk.empty())
    cause.text += fmt::format(" (its disk at {} is full)", first->full_disk);
  return cause;
}

}  // namespace

std::optional<RunCause> cause_of(const std::vector<MachineStatus>& machines) {
  std::optional<RunCause> cause = find_cause(machines);
  if (!cause) return cause;
  const auto at = std::ranges::find(machines, cause->machine, &MachineStatus::id);
  cause->lines = at->last_lines;
  cause->where = (cause->rank ? fmt::format("rank {} on ", *cause->rank) : "") + name_of(*at);
  return cause;
}

std::optional<EarlierFailure> earlier_failure_of(const std::vector<MachineStatus>& machines) {
  std::optional<EarlierFailure> newest;
  // The length of the log is each machine's own: that of the machine with the failure is wanted.
  bool is_own = false;
  for (const MachineStatus& each : machines) {
    const auto& failure = each.earlier_failure;
    if (!failure || (newest && failure->attempt < newest->attempt)) continue;
    const bool is_newer = !newest || failure->attempt > newest->attempt;
    if (!is_newer && (is_own || failure->machine != each.id)) continue;
    newest = failure;
    is_own = failure->machine == each.id;
  }
  if (newest && !is_own) newest->log_bytes.reset();
  return newest;
}

}  // namespace dtool::cli
