// SPDX-License-Identifier: MIT
#include "cli/remove_run.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/failures.h"
#include "cli/recorded.h"
#include "cli/terminal_text.h"
#include "ssh/host_request.h"

namespace dtool::cli {

std::size_t remove_on_hosts(Console& console, ssh::Remote& remote,
                            const killfiles::Killfile& killfile, What what) {
  std::vector<ssh::Task> tasks;
  for (const HostMachines& each : machines_by_host(remote.hosts(), killfile))
    tasks.push_back(
        {each.host, ssh::ask_host(host::RemoveRequest{killfile.run_id, what == What::all})});
  ssh::Events nobody;
  ssh::RunOptions options;
  options.timeout = std::chrono::minutes(5);  // a large tree on a slow disk
  std::size_t trees = 0;
  std::map<std::string, std::vector<ssh::Host>> kept;
  for (ssh::HostResult& result : remote.run(std::move(tasks), nobody, options)) {
    std::string fault = result.error;
    try {
      if (result.failure == ssh::Failure::none) {
        const auto reply = ssh::read_reply<host::RemoveReply>(result);
        if (reply.had_tree) ++trees;
        if (!reply.kept.empty()) kept[reply.kept].push_back(result.host);
        continue;
      }
    } catch (const host::BadMessage& error) {
      fault = error.what();
    }
    console.note(fmt::format("{}: {} of the run is left: {}", ssh::to_string(result.host),
                             killfiles::run_folder(killfile.run_id), without_controls(fault)));
  }
  for (const auto& [folder, hosts] : kept)
    console.note(fmt::format("{}: what the run wrote into its copy of the code is kept in {}",
                             fold_hosts(hosts), without_controls(folder)));
  return trees;
}

}  // namespace dtool::cli
