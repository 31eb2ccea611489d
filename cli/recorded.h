// Finding recorded runs, for the commands that act on them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "killfiles/killfile.h"
#include "ssh/host.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// ~/.dtool/killfiles: where runs are recorded.
std::filesystem::path killfile_folder();

/// The run named by id or prefix; the newest where `id` is empty. Throws UsageError where there is
/// none, where several match, or where its file cannot be read.
killfiles::Killfile recorded_run(const std::string& id);

/// The machines of a run that are reached through one host, by their places in the killfile.
struct HostMachines {
  std::size_t host = 0;  ///< the first place in `hosts` where it stands
  std::vector<std::size_t> machines;
};

/// A scheduler's login host is that of all its machines. `hosts` are the machines' in their order,
/// or each of those once.
std::vector<HostMachines> machines_by_host(const std::vector<ssh::Host>& hosts,
                                           const killfiles::Killfile& killfile);

/// `another host answers to this name, …; the run was started on …`, or empty. `host`: who says it
/// is there, as identify_host() of dtool-host; `result`: in whose answer.
std::string stranger_at(const killfiles::Machine& machine, const std::string& host,
                        const ssh::HostResult& result);

}  // namespace dtool::cli
