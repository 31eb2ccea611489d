// SPDX-License-Identifier: MIT
#include "cli/run/host/used_by_runs.h"

#include "ssh/host/files.h"

namespace dtool::host {
namespace {

bool names(const std::string& script, const std::string& hash) {
  return read_file(script).value_or("").find(hash) != std::string::npos;
}

}  // namespace

std::string run_that_uses(const std::string& hash) {
  const std::string runs = expand_home("~/.dtool/runs");
  for (const std::string& run : list_folder(runs)) {
    bool is_named = false;
    bool has_ended = true;
    for (const std::string& name : list_folder(runs + "/" + run)) {
      const std::string machine = runs + "/" + run + "/" + name;
      if (!name.starts_with("machine") || !is_folder(machine)) continue;  // beside the run's tree
      is_named = is_named || names(machine + "/script", hash) || names(machine + "/rank", hash);
      has_ended = has_ended && (exists(machine + "/exit_code") || exists(machine + "/killed"));
    }
    if (is_named && !has_ended) return run;
  }
  return {};
}

}  // namespace dtool::host
