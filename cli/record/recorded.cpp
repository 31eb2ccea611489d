// SPDX-License-Identifier: MIT
#include "cli/record/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "cli/record/record_files.h"
#include "cli/terminal_text.h"
#include "ssh/machine/home_folder.h"
#include "ssh/notice.h"

namespace dtool::cli {

std::filesystem::path killfile_folder() {
  return ssh::home_folder() / ".dtool" / "killfiles";
}

namespace {

/// The record of the only run that `id` is, or begins, and that has no killfile any more. Nothing
/// if another run may be meant.
std::optional<RunRecord> find_forgotten(const std::string& id) {
  std::vector<std::string> begun;
  std::error_code fault;
  for (const auto& each : std::filesystem::directory_iterator(record_folder(), fault)) {
    const std::string name = each.path().stem();
    if (each.path().extension() == ".json" && name.starts_with(id)) begun.push_back(name);
  }
  const bool is_exact = std::ranges::count(begun, id) > 0;
  if (begun.size() != 1 && !is_exact) return std::nullopt;
  const std::string& name = is_exact ? id : begun.front();
  if (!killfiles::is_run_id(name)) return std::nullopt;
  if (std::filesystem::exists(killfiles::path_of(killfile_folder(), name))) return std::nullopt;
  try {
    return find_record(name);
  } catch (const std::runtime_error&) {
    return std::nullopt;  // dtool show tells why it cannot be read
  }
}

UsageError was_forgotten(const RunRecord& run) {
  const auto& forgotten = run.forgotten;
  const bool is_left = forgotten && !forgotten->left_on.empty();
  const std::string ended =
      !forgotten || is_left ? "" : "was ended, and ";  // an older dtool may have forgotten it
  const std::string left =
      is_left ? fmt::format(", though something may be left on {}", forgotten->left_on) : "";
  std::string hint = "dtool show, diff, rerun and run --resume still take it";
  if (!run.machines.empty())
    hint += fmt::format("; its logs and outputs were left in {} on {}",
                        run.machines.front().output_folder,
                        run.machines.size() == 1 ? run.machines.front().host : "each host");
  return UsageError(fmt::format("{} {}its killfile was deleted{}{}", run.run_id, ended,
                                forgotten ? fmt::format(" at {}", forgotten->at) : "", left),
                    hint);
}

}  // namespace

UsageError unreadable(const killfiles::Listed& listed) {
  const bool has_hint = listed.error.find("\nhint: ") != listed.error.npos;
  return UsageError(listed.error, has_hint ? "" : "mend the file: dtool needs it to end the run");
}

killfiles::Listed find_recorded(const std::string& id, const killfiles::Narrow& narrow) {
  try {
    return killfiles::find(killfile_folder(), id, narrow, ssh::notice);
  } catch (const std::invalid_argument&) {
    if (const auto forgotten = find_forgotten(id)) throw was_forgotten(*forgotten);
    throw;
  }
}

killfiles::Killfile recorded_run(const std::string& id, const std::string& hint) {
  if (!id.empty()) {
    const killfiles::Listed found = find_recorded(id);
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

std::vector<std::size_t> choose_machines(const killfiles::Killfile& killfile,
                                         const std::vector<std::string>& wanted) {
  const auto& machines = killfile.machines;
  const auto is_called = [](const killfiles::Machine& machine, const std::string& name) {
    return name == std::to_string(machine.id) || name == machine.host ||
           name == ssh::parse_host(machine.host).name;
  };
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const bool is_wanted = std::ranges::any_of(
        wanted, [&](const std::string& name) { return is_called(machines[i], name); });
    if (wanted.empty() || is_wanted) chosen.push_back(i);
  }
  for (const std::string& name : wanted) {
    if (std::ranges::any_of(machines, [&](const auto& each) { return is_called(each, name); }))
      continue;
    const int first = machines.front().id;
    const int last = machines.back().id;
    throw UsageError(
        fmt::format("{} has no machine {}", killfile.run_id, without_controls(name)),
        first == last ? fmt::format("it has machine {} alone, on {}", first, machines.front().host)
                      : fmt::format("its machines are {} to {}; a host's name does, too: {}", first,
                                    last, machines.front().host));
  }
  return chosen;
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
