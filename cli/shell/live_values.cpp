// SPDX-License-Identifier: MIT
// The values that completion looks up: recorded runs, their hosts and machines, groups,
// experiments.
#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "cli/plan/experiment.h"
#include "cli/record/recorded.h"
#include "cli/settings.h"
#include "cli/shell/completion.h"
#include "cli/terminal_text.h"
#include "ssh/machine/home_folder.h"

namespace dtool::cli {
namespace {

using Candidates = std::vector<Candidate>;

/// The result of `look_up`, or nothing if it fails.
template <typename LookUp>
Candidates quietly(const LookUp& look_up) {
  try {
    return look_up();
  } catch (const std::exception&) {
    return {};
  }
}

Candidates recorded_runs() {
  Candidates runs;
  for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
    if (!each.killfile || each.killfile->run_id.empty()) continue;
    runs.push_back(
        {each.killfile->run_id, fmt::format("{}, {}", each.killfile->created,
                                            counted(each.killfile->machines.size(), "machine"))});
  }
  return runs;
}

/// What the project's file says is offered once the user has accepted it.
Candidates groups() {
  SettingsFiles files(ssh::home_folder() / ".dtool" / "config.toml", "dtool.toml");
  const Settings* settings = &files.users().settings;
  try {
    settings = &files.all();
  } catch (const std::exception&) {  // the file is not accepted, or wrong
  }
  Candidates all;
  for (const auto& [group, hosts] : settings->groups) all.push_back({"@" + group, hosts});
  return all;
}

Candidates recorded_hosts() {
  Candidates hosts;
  for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
    if (!each.killfile) continue;
    for (const killfiles::Machine& machine : each.killfile->machines) {
      const Candidate host{machine.host, "of a recorded run"};
      if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
    }
  }
  return hosts;
}

Candidates known_hosts() {
  Candidates all = quietly(groups);
  for (Candidate& each : quietly(recorded_hosts)) all.push_back(std::move(each));
  const Candidate local{"local", "this machine, without SSH"};
  std::erase_if(all, [&local](const Candidate& each) { return each.word == local.word; });
  all.push_back(local);
  return all;
}

Candidates experiments() {
  Candidates all;
  for (const std::string& name : shipped_experiments()) all.push_back({name, "comes with dtool"});
  return all;
}

Candidates machines_of(const std::string& run) {
  Candidates all;
  for (const killfiles::Machine& machine : recorded_run(run).machines)
    all.push_back({std::to_string(machine.id), machine.host});
  return all;
}

}  // namespace

LiveValues live_values() {
  LiveValues live;
  live.runs = [] { return quietly(recorded_runs); };
  live.hosts = known_hosts;
  live.experiments = [] { return quietly(experiments); };
  live.machines = [](const std::string& run) {
    return quietly([&run] { return machines_of(run); });
  };
  return live;
}

}  // namespace dtool::cli
