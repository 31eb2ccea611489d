// SPDX-License-Identifier: MIT
#include "cli/record/remove_run.h"

#include <fmt/format.h>

#include <cassert>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/failures.h"
#include "cli/record/recorded.h"
#include "cli/terminal_text.h"
#include "ssh/host_request.h"
#include "ssh/wire/tree.h"

namespace dtool::cli {
namespace {

/// Hosts whose folders differ in nothing but the machine's number.
struct KeptIn {
  std::vector<ssh::Host> hosts = {};
  std::set<std::string> folders = {};

  void add(const ssh::Host& host, const std::string& folder) {
    hosts.push_back(host);
    folders.insert(folder);
  }
};

/// `…/machine*.written` of `…/machine3.written`.
std::string for_all_machines(const std::string& folder) {
  constexpr std::string_view kMachine = "/machine";
  const std::size_t at = folder.rfind(kMachine);
  if (at == folder.npos) return folder;
  const std::size_t number = at + kMachine.size();
  const std::size_t end = folder.find_first_not_of("0123456789", number);
  if (end == number) return folder;
  return folder.substr(0, number) + "*" + (end == folder.npos ? "" : folder.substr(end));
}

}  // namespace

std::size_t remove_on_hosts(Console& console, ssh::Remote& remote,
                            const killfiles::Killfile& killfile, What what) {
  assert(killfiles::is_run_id(killfile.run_id));  // it names the folder that is deleted
  std::vector<ssh::Task> tasks;
  for (const HostMachines& each : machines_by_host(remote.hosts(), killfile)) {
    const bool was_begun = !killfile.machines[each.machines.front()].state_folder.empty();
    if (!was_begun) continue;
    tasks.push_back(
        {each.host, ssh::ask_host(host::RemoveRequest{killfile.run_id, what == What::all})});
  }
  ssh::Events nobody;
  ssh::RunOptions options;
  options.timeout = std::chrono::minutes(5);  // a large tree on a slow disk
  std::size_t trees = 0;
  std::map<std::string, std::vector<ssh::Host>> left;
  std::map<std::string, KeptIn> kept;
  for (ssh::HostResult& result : remote.run(std::move(tasks), nobody, options)) {
    std::string fault = result.error;
    try {
      if (result.failure == ssh::Failure::none) {
        const auto reply = ssh::read_reply<host::RemoveReply>(result);
        if (reply.had_tree) ++trees;
        if (!reply.kept.empty()) kept[for_all_machines(reply.kept)].add(result.host, reply.kept);
        continue;
      }
    } catch (const host::BadMessage& error) {
      fault = error.what();
    }
    left[fault].push_back(result.host);
  }
  for (const auto& [fault, hosts] : left)
    console.note(fmt::format("{}: {} of the run is left: {}", fold_hosts(hosts),
                             killfiles::run_folder(killfile.run_id), without_controls(fault)));
  for (const auto& [pattern, each] : kept)
    console.note(fmt::format(
        "{}: what the run wrote into its copy of the code is kept in {}", fold_hosts(each.hosts),
        without_controls(each.folders.size() == 1 ? *each.folders.begin() : pattern)));
  return trees;
}

}  // namespace dtool::cli
