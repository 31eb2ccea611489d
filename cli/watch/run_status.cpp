// SPDX-License-Identifier: MIT
#include "cli/watch/run_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "cli/action.h"
#include "cli/record/recorded.h"
#include "cli/watch/status_answer.h"

namespace dtool::cli {

namespace {

/// The machines to ask, host by host; passes each host's answer on, machine by machine.
class Questions : public ssh::Events {
 public:
  Questions(const ssh::Remote& remote, const killfiles::Killfile& killfile,
            const std::vector<std::size_t>& which, const OnStatus& on_status,
            std::chrono::seconds patience)
      : groups_(machines_by_host(remote.hosts(), killfile)),
        asked_(groups_.size()),
        machines_(killfile.machines.size()),
        on_status_(on_status),
        patience_(patience) {
    const std::set<std::size_t> wanted(which.begin(), which.end());
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      group_of_[groups_[group].host] = group;
      std::erase_if(groups_[group].machines, [&](std::size_t i) { return !wanted.contains(i); });
      for (const std::size_t i : groups_[group].machines)
        asked_[group].push_back({killfile.run_id, killfile.machines[i]});
    }
  }

  std::vector<ssh::Task> tasks() const {
    std::vector<ssh::Task> tasks;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (!asked_[group].empty())
        tasks.push_back({groups_[group].host, status_command(asked_[group], Detail::full)});
    }
    return tasks;
  }

  void on_result(std::size_t host, const ssh::HostResult& result) override {
    const std::size_t group = group_of_.at(host);
    const auto statuses = read_statuses(asked_[group], named(result));
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      const std::size_t machine = groups_[group].machines[i];
      machines_[machine] = statuses[i];
      on_status_(machine, result, statuses[i]);
    }
  }

  const MachineStatus& machine(std::size_t i) const { return machines_[i]; }

 private:
  ssh::HostResult named(ssh::HostResult result) const {
    if (result.failure == ssh::Failure::timed_out)
      result.error = fmt::format("it did not answer within {} s", patience_.count());
    return result;
  }

  std::vector<HostMachines> groups_;
  std::map<std::size_t, std::size_t> group_of_;  ///< by host
  std::vector<std::vector<AskedMachine>> asked_;
  std::vector<MachineStatus> machines_;
  const OnStatus& on_status_;
  std::chrono::seconds patience_;
};

}  // namespace

std::vector<MachineStatus> ask_machines(ssh::Remote& remote, const killfiles::Killfile& killfile,
                                        const std::vector<std::size_t>& which,
                                        const OnStatus& on_status, std::chrono::seconds patience,
                                        ssh::Follows follows) {
  Questions questions(remote, killfile, which, on_status, patience);
  ssh::RunOptions options;
  options.timeout = patience;
  options.follows = follows;
  options.on_interrupt = ssh::OnInterrupt::leave;
  remote.run(questions.tasks(), questions, options);
  std::vector<MachineStatus> machines;
  for (const std::size_t i : which) machines.push_back(questions.machine(i));
  return machines;
}

std::vector<std::size_t> all_machines(const killfiles::Killfile& killfile) {
  std::vector<std::size_t> all(killfile.machines.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

bool has_ended(const std::vector<MachineStatus>& machines) {
  return std::none_of(machines.begin(), machines.end(), [](const MachineStatus& each) {
    return each.state == MachineState::pending || each.state == MachineState::running ||
           each.state == MachineState::unreachable || each.state == MachineState::unproven;
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
  const bool waits = std::all_of(machines.begin(), machines.end(), [](const MachineStatus& each) {
    return each.state == MachineState::pending;
  });
  return has_ended(machines) ? "ended" : waits ? "pending" : "running";
}

}  // namespace dtool::cli
