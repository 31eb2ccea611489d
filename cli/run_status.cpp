#include "cli/run_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/action.h"

namespace dtool::cli {

std::vector<MachineStatus> ask_machines(ssh::Remote& remote, const killfiles::Killfile& killfile,
                                        const std::vector<std::size_t>& which,
                                        ssh::Listener& listener, std::chrono::seconds patience) {
  std::vector<ssh::Task> tasks;
  for (const std::size_t i : which)
    tasks.push_back({i, status_command(killfile.run_id, killfile.machines[i])});
  ssh::RunOptions options;
  options.timeout = patience;
  options.on_interrupt = ssh::OnInterrupt::leave;
  auto results = remote.run(std::move(tasks), listener, options);
  for (ssh::HostResult& result : results) {
    if (result.failure == ssh::Failure::timed_out)
      result.error = fmt::format("it did not answer within {} s", patience.count());
  }
  std::vector<MachineStatus> machines;
  for (std::size_t i = 0; i < results.size(); ++i)
    machines.push_back(read_status(killfile.machines[which[i]], results[i]));
  return machines;
}

std::vector<std::size_t> all_machines(const killfiles::Killfile& killfile) {
  std::vector<std::size_t> all(killfile.machines.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

bool has_ended(const std::vector<MachineStatus>& machines) {
  return std::none_of(machines.begin(), machines.end(), [](const MachineStatus& each) {
    return each.state == MachineState::running || each.state == MachineState::unreachable;
  });
}

int exit_code_of(const std::vector<MachineStatus>& machines) {
  const bool all_well = std::all_of(machines.begin(), machines.end(),
                                    [](const MachineStatus& each) { return each.is_well(); });
  return all_well ? kAllWell : kSomeFailed;
}

int attempt_of(const std::vector<MachineStatus>& machines) {
  int attempt = 0;
  for (const MachineStatus& each : machines) attempt = std::max(attempt, each.attempt);
  return attempt;
}

std::string_view state_of_run(const std::vector<MachineStatus>& machines) {
  if (exit_code_of(machines) != kAllWell) return "failed";
  return has_ended(machines) ? "ended" : "running";
}

}  // namespace dtool::cli
