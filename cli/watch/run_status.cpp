// SPDX-License-Identifier: MIT
#include "cli/watch/run_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "cli/action.h"
#include "cli/host_output.h"
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
  std::map<std::size_t, std::size_t> group_of_;  ///< the number of each host's group, by host
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
  return std::ranges::none_of(machines, [](const MachineStatus& each) {
    return each.state == MachineState::pending || each.state == MachineState::running ||
           each.is_silent();
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
  return has_ended(machines) ? kEnded : waits ? "pending" : "running";
}

namespace {

/// The words in the order of urgency, after running ones.
constexpr std::array<std::string_view, 15> kWords = {
    "running",       "pending",     "failed",    "timed out",   "node failed",
    "out of memory", "cancelled",   "preempted", "stopped",     "lost",
    "killed",        "not started", "unproven",  "unreachable", kEnded};

/// A group while it is put together.
struct HostGroup {
  HostsOfRuns hosts;
  std::map<std::string, std::size_t> places;  ///< the places of hosts, by their names
};

/// The group with these connection settings; it is made if there is none.
HostGroup& group_of(const ssh::ConnectOptions& connect, std::vector<HostGroup>& groups) {
  for (HostGroup& each : groups) {
    if (each.hosts.targets.connect == connect) return each;
  }
  groups.emplace_back().hosts.targets.connect = connect;
  return groups.back();
}

void add_part(const ssh::Host& host, RunPart part, HostGroup& group) {
  HostsOfRuns& hosts = group.hosts;
  const auto [at, is_new] = group.places.try_emplace(ssh::to_string(host), hosts.parts.size());
  if (is_new) {
    hosts.targets.hosts.push_back(host);
    hosts.targets.slots.emplace_back();
    hosts.parts.emplace_back();
  }
  hosts.parts[at->second].push_back(part);
}

std::vector<AskedMachine> asked_machines(const std::vector<killfiles::Killfile>& runs,
                                         const std::vector<RunPart>& parts) {
  std::vector<AskedMachine> asked;
  for (const RunPart& part : parts)
    asked.push_back({runs[part.run].run_id, runs[part.run].machines[part.machine]});
  return asked;
}

}  // namespace

std::vector<HostsOfRuns> group_hosts(const std::vector<Targets>& targets) {
  std::vector<HostGroup> groups;
  for (std::size_t run = 0; run < targets.size(); ++run) {
    if (targets[run].hosts.empty()) continue;
    HostGroup& group = group_of(targets[run].connect, groups);
    for (std::size_t machine = 0; machine < targets[run].hosts.size(); ++machine)
      add_part(targets[run].hosts[machine], {run, machine}, group);
  }
  std::vector<HostsOfRuns> hosts;
  for (HostGroup& each : groups) hosts.push_back(std::move(each.hosts));
  return hosts;
}

std::vector<ssh::Task> state_tasks(const std::vector<killfiles::Killfile>& runs,
                                   const HostsOfRuns& hosts) {
  std::vector<ssh::Task> tasks;
  for (const std::vector<RunPart>& parts : hosts.parts)
    tasks.push_back({tasks.size(), status_command(asked_machines(runs, parts), Detail::brief)});
  return tasks;
}

void read_states(const std::vector<killfiles::Killfile>& runs, const HostsOfRuns& hosts,
                 const std::vector<ssh::HostResult>& results,
                 std::vector<std::vector<MachineStatus>>& states) {
  for (std::size_t host = 0; host < results.size(); ++host) {
    const std::vector<RunPart>& parts = hosts.parts[host];
    const auto statuses = read_statuses(asked_machines(runs, parts), results[host]);
    for (std::size_t i = 0; i < parts.size(); ++i)
      states[parts[i].run][parts[i].machine] = statuses[i];
  }
}

AskedStates ask_states(Invocation& invocation, const std::vector<killfiles::Killfile>& runs,
                       HostOptions options) {
  constexpr std::chrono::seconds kPatience{20};
  if (options.connect_timeout == 0) options.connect_timeout = kSecondsForStates;
  std::vector<Targets> targets;
  AskedStates answers;
  for (const killfiles::Killfile& run : runs) {
    // AllenAct's killfiles tell nothing but sessions' names.
    const bool can_be_asked = !run.run_id.empty();
    targets.push_back(can_be_asked ? recorded_targets(run, options, invocation.settings.users())
                                   : Targets());
    answers.states.emplace_back(targets.back().hosts.size());
  }
  for (const HostsOfRuns& hosts : group_hosts(targets)) {
    const auto remote = invocation.reach(hosts.targets.hosts, hosts.targets.connect);
    AnswerCount answered(invocation.console, hosts.targets.hosts, "answered");
    ssh::RunOptions run_options;
    run_options.timeout = kPatience;
    run_options.on_interrupt = ssh::OnInterrupt::leave;
    const auto results = remote->run(state_tasks(runs, hosts), answered, run_options);
    read_states(runs, hosts, results, answers.states);
    answers.results.insert(answers.results.end(), results.begin(), results.end());
    answers.interrupted = remote->interrupted();
    if (answers.interrupted) break;
  }
  invocation.console.progress("");
  return answers;
}

bool is_over(const MachineStatus& machine) {
  return meaning_of(machine.state).ending == Ending::over && machine.processes == 0;
}

std::string state_word(const MachineStatus& machine) {
  if (machine.state == MachineState::exited)
    return std::string(machine.exit_code == 0 ? kEnded : "failed");
  std::string word(to_string(machine.state));
  std::ranges::replace(word, '_', ' ');
  return word;
}

std::string states_text(const std::vector<MachineStatus>& machines) {
  std::string text;
  for (const std::string_view word : kWords) {
    const auto count =
        std::count_if(machines.begin(), machines.end(),
                      [word](const MachineStatus& each) { return state_word(each) == word; });
    if (count == 0) continue;
    if (static_cast<std::size_t>(count) == machines.size()) return std::string(word);
    text += text.empty() ? fmt::format("{} of {} {}", count, machines.size(), word)
                         : fmt::format(", {} {}", count, word);
  }
  return text;
}

}  // namespace dtool::cli
