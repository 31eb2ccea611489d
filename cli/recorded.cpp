// SPDX-License-Identifier: MIT
#include "cli/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ssh/machine/home_folder.h"

namespace dtool::cli {

std::filesystem::path killfile_folder() {
  return ssh::home_folder() / ".dtool" / "killfiles";
}

UsageError unreadable(const killfiles::Listed& listed) {
  const bool has_hint = listed.error.find("\nhint: ") != listed.error.npos;
  return UsageError(listed.error, has_hint ? "" : "mend the file: dtool needs it to end the run");
}

killfiles::Killfile recorded_run(const std::string& id, const std::string& hint) {
  if (!id.empty()) {
    const killfiles::Listed found = killfiles::find(killfile_folder(), id);
    if (!found.killfile) throw unreadable(found);
    return *found.killfile;
  }
  const std::vector<killfiles::Listed> runs = killfiles::list(killfile_folder());
  for (const killfiles::Listed& each : runs) {
    if (each.killfile) return *each.killfile;
  }
  if (!runs.empty()) throw unreadable(runs.front());
  throw UsageError("no run is recorded in " + killfile_folder().string(), hint);
}

std::vector<HostMachines> machines_by_host(const std::vector<ssh::Host>& hosts,
                                           const killfiles::Killfile& killfile) {
  const bool is_one_a_machine = hosts.size() == killfile.machines.size();
  std::vector<HostMachines> groups;
  std::map<std::string, std::size_t> group_of;
  for (std::size_t i = 0; i < killfile.machines.size(); ++i) {
    const ssh::Host host = is_one_a_machine ? hosts[i] : ssh::parse_host(killfile.machines[i].host);
    const auto [at, is_new] = group_of.try_emplace(ssh::to_string(host), groups.size());
    if (is_new) {
      const auto place = std::ranges::find(hosts, host);
      groups.push_back({static_cast<std::size_t>(place - hosts.begin()), {}});
    }
    groups[at->second].machines.push_back(i);
  }
  return groups;
}

std::string stranger_at(const killfiles::Machine& machine, const std::string& host,
                        const ssh::HostResult& result) {
  auto found = killfiles::parse_identity(host).value_or(killfiles::HostIdentity());
  if (!found.is_known()) return "";
  found.host_key = result.host_key;
  if (compare(machine.identity, found) != killfiles::Likeness::another) return "";
  return fmt::format("another host answers to this name, {}; the run was started on {}",
                     describe(found), describe(machine.identity));
}

}  // namespace dtool::cli
