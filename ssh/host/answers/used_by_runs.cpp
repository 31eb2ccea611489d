// SPDX-License-Identifier: MIT
#include "ssh/host/answers/used_by_runs.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "ssh/host/files.h"
#include "ssh/host/process_table.h"

namespace dtool::host {
namespace {

bool names(const std::string& script, const std::string& hash) {
  return read_file(script).value_or("").find(hash) != std::string::npos;
}

/// Of a run's folder: whether a machine was started here and has not ended. Before any start a
/// process may hold a port, and after the end the session's last may still be there.
bool goes_on(const std::string& run) {
  const std::vector<std::string> names = list_folder(run);
  return std::ranges::any_of(names, [&run](const std::string& name) {
    const std::string machine = run + "/" + name;
    const bool is_one = name.starts_with("machine") && is_folder(machine);  // not the run's tree
    return is_one && !exists(machine + "/exit_code") && !exists(machine + "/killed");
  });
}

}  // namespace

std::string run_that_uses(const std::string& hash) {
  const std::string runs = expand_home("~/.dtool/runs");
  for (const std::string& run : list_folder(runs)) {
    bool is_named = false;
    for (const std::string& name : list_folder(runs + "/" + run)) {
      const std::string machine = runs + "/" + run + "/" + name;
      if (!name.starts_with("machine") || !is_folder(machine)) continue;  // beside the run's tree
      is_named = is_named || names(machine + "/script", hash) || names(machine + "/rank", hash);
    }
    if (is_named && goes_on(runs + "/" + run)) return run;
  }
  return {};
}

std::vector<std::string> running_runs() {
  std::set<std::string> runs;
  for (const pid_t pid : list_pids()) {
    const RunMark mark = read_run_mark(pid);
    if (mark.run_id && !mark.run_id->empty() && user_of(pid) == ::geteuid())
      runs.insert(*mark.run_id);
  }
  std::erase_if(runs, [](const std::string& run) {
    return run.find('/') == run.npos && !goes_on(expand_home("~/.dtool/runs/" + run));
  });
  return {runs.begin(), runs.end()};
}

}  // namespace dtool::host
