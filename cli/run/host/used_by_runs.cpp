// SPDX-License-Identifier: MIT
#include "cli/run/host/used_by_runs.h"

#include <unistd.h>

#include <set>

#include "ssh/host/files.h"
#include "ssh/host/process_table.h"

namespace dtool::host {
namespace {

bool names(const std::string& script, const std::string& hash) {
  return read_file(script).value_or("").find(hash) != std::string::npos;
}

/// Of a run's folder: whether all its machines here have ended, though the last of a session's
/// processes may still be about to.
bool has_ended(const std::string& run) {
  bool has_machine = false;
  for (const std::string& name : list_folder(run)) {
    const std::string machine = run + "/" + name;
    if (!name.starts_with("machine") || !is_folder(machine)) continue;  // beside the run's tree
    has_machine = true;
    if (!exists(machine + "/exit_code") && !exists(machine + "/killed")) return false;
  }
  return has_machine;
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
    if (is_named && !has_ended(runs + "/" + run)) return run;
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
    return run.find('/') == run.npos && has_ended(expand_home("~/.dtool/runs/" + run));
  });
  return {runs.begin(), runs.end()};
}

}  // namespace dtool::host
