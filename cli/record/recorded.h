// SPDX-License-Identifier: MIT
// Finds recorded runs for the commands that act on them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/action.h"
#include "killfiles/killfile.h"
#include "ssh/host.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// ~/.dtool/killfiles, the folder of recorded runs.
std::filesystem::path killfile_folder();

/// The run named by an id or a prefix; the newest if `id` is empty. Throws UsageError if none or
/// several match, or if its file cannot be read; `hint` is for when no run is recorded.
killfiles::Killfile recorded_run(const std::string& id,
                                 const std::string& hint = "dtool run starts one");

/// The file of the run that `id` means (killfiles::find). Throws UsageError that tells of a run
/// which was forgotten, std::invalid_argument if none or several match.
killfiles::Listed find_recorded(const std::string& id, const killfiles::Narrow& narrow = {});

/// Says why the killfile could not be read.
UsageError unreadable(const killfiles::Listed& listed);

/// The places in the killfile of these machines, each named by its id or by its host as it is
/// recorded; all machines if `wanted` is empty. Throws UsageError on one that the run does not
/// have.
std::vector<std::size_t> choose_machines(const killfiles::Killfile& killfile,
                                         const std::vector<std::string>& wanted);

/// The machines of a run that are reached through one host, by their indexes in the killfile.
struct HostMachines {
  std::size_t host = 0;  ///< index of its first occurrence in `hosts`
  std::vector<std::size_t> machines;
};

/// Groups the machines by host; all machines of a scheduler's run share its login host. `hosts` has
/// one entry per machine in their order, or each host once.
std::vector<HostMachines> machines_by_host(const std::vector<ssh::Host>& hosts,
                                           const killfiles::Killfile& killfile);

/// `another host answers to this name, …; the run was started on …`, or empty. `host`: who says it
/// is there, as identify_host() of dtool-host; `result`: in whose answer.
std::string stranger_at(const killfiles::Machine& machine, const std::string& host,
                        const ssh::HostResult& result);

}  // namespace dtool::cli
