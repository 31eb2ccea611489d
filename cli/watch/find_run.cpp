// SPDX-License-Identifier: MIT
#include "cli/watch/find_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <set>
#include <vector>

#include "cli/action.h"
#include "cli/record/record.h"
#include "cli/record/recorded.h"
#include "cli/watch/record_end.h"
#include "cli/watch/run_status.h"
#include "killfiles/nearest.h"
#include "ssh/fanout/fleet.h"
#include "ssh/notice.h"
#include "ssh/quote.h"
#include "ssh/script.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{20};
constexpr std::size_t kMostNamed = 5;
constexpr int kMostRecord = 16 << 20;  // bytes; no start sends more

/// The ids of all runs that have a killfile.
std::set<std::string> kept_runs() {
  std::set<std::string> ids;
  for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
    if (!each.killfile || each.killfile->kind == killfiles::RunKind::run)
      ids.insert(each.file.stem());
  }
  return ids;
}

/// Those, and the ids of all runs that have a record.
std::set<std::string> known_runs(const std::set<std::string>& kept) {
  std::set<std::string> ids = kept;
  for (std::string& id : recorded_ids()) ids.insert(std::move(id));
  return ids;
}

/// `20261121-034512` of `mnist_20261121-034512-3fa91c`: orders runs by their start.
std::string time_in(const std::string& id) {
  constexpr std::size_t kLength = 22;  // the length of `20261121-034512-3fa91c`
  return id.size() < kLength ? id : id.substr(id.size() - kLength);
}

/// Several may have begun in one second: they are in the order of their killfiles, as for other
/// commands.
std::vector<std::string> newest_first(const std::set<std::string>& known) {
  constexpr std::size_t kSeconds = 15;  // the length of `20261121-034512`
  std::vector<std::string> ids;
  for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
    const std::string id = each.file.stem();
    if (known.contains(id)) ids.push_back(id);
  }
  const std::set<std::string> listed(ids.begin(), ids.end());
  std::ranges::set_difference(known, listed, std::back_inserter(ids));
  std::ranges::stable_sort(ids, std::greater(),
                           [](const auto& id) { return time_in(id).substr(0, kSeconds); });
  return ids;
}

std::optional<killfiles::Killfile> killfile_of(const std::string& id) {
  const fs::path file = killfiles::path_of(killfile_folder(), id);
  if (!fs::exists(file)) return std::nullopt;
  return killfiles::read(file);
}

/// The copy on machine 0's host. Nothing if it has none.
std::optional<RunRecord> record_on_host(ssh::Remote& remote, const killfiles::Killfile& killfile) {
  const std::string file = killfiles::run_folder(killfile.run_id) + "/record.json";
  const std::string text =
      fmt::format("head -c {} {} 2> /dev/null\n", kMostRecord, ssh::quote_path(file));
  const auto groups = machines_by_host(remote.hosts(), killfile);
  ssh::Events nobody;
  ssh::RunOptions options;
  options.timeout = kPatience;
  const auto results = remote.run({{groups.front().host, ssh::bash(text)}}, nobody, options);
  if (results.empty() || !results.front().ok() || results.front().out.empty()) return std::nullopt;
  RunRecord record =
      parse_record(results.front().out, fmt::format("{} on {}", file, killfile.machines[0].host));
  if (record.run_id != killfile.run_id)
    throw std::runtime_error(
        fmt::format("{} on {} is the record of another run", file, killfile.machines[0].host));
  return record;
}

}  // namespace

std::string complete_id(const std::string& id) {
  const std::set<std::string> kept = kept_runs();
  const std::set<std::string> known = known_runs(kept);
  if (known.empty())
    throw UsageError("no run is recorded in " + record_folder().string(), "dtool run starts one");
  const std::vector<std::string> ids = newest_first(known);
  if (id.empty()) return ids.front();
  const killfiles::Meant meant_runs = killfiles::runs_meant(ids, id);
  std::vector<std::string> matches = meant_runs.ids;
  const std::size_t all = matches.size();
  // As for the other commands, a run that was forgotten is meant only if no other one can be.
  if (std::ranges::any_of(matches, [&](const auto& each) { return kept.contains(each); }))
    std::erase_if(matches, [&](const auto& each) { return !kept.contains(each); });
  if (meant_runs.is_tag || matches.size() == 1) {
    if (all > 1)
      ssh::notice(fmt::format("{} runs fit {}: this is the newest{}, {}", all, id,
                              matches.size() < all ? " that was not forgotten" : "",
                              matches.front()));
    return matches.front();
  }
  std::vector<std::string> named = matches;
  if (named.size() > kMostNamed) named.resize(kMostNamed);
  if (matches.empty()) {
    const auto meant = killfiles::nearest_beginning(id, ids);
    throw UsageError(fmt::format("no run {} is recorded here", id),
                     (meant ? fmt::format("did you mean {}? ", *meant) : "") +
                         "dtool list shows the runs, and ls " + record_folder().string() +
                         " those that were forgotten, too");
  }
  throw UsageError(fmt::format("{} runs have {} in their ids: {}{}", matches.size(), id,
                               fmt::join(named, ", "), matches.size() > kMostNamed ? ", …" : ""),
                   "give more of the id");
}

RunRecord explained_run(Console& console, const std::string& id, const HostOptions& hosts,
                        SettingsFiles& settings) {
  const std::string run_id = complete_id(id);
  if (id.empty()) console.note(fmt::format("the newest run is {}", run_id));
  std::optional<RunRecord> record = find_record(run_id);
  const auto killfile = killfile_of(run_id);
  if (!killfile || (record && is_complete(*record))) {
    if (!record) throw UsageError(fmt::format("no run {} is recorded here", run_id));
    return *record;
  }
  const Targets targets = recorded_targets(*killfile, hosts, settings.users());
  const auto remote = ssh::make_fleet(targets.hosts, targets.connect);
  std::vector<std::string> silent;
  const auto look = [&silent](std::size_t, const ssh::HostResult& result,
                              const MachineStatus& status) {
    if (status.state == MachineState::unreachable)
      silent.push_back(fmt::format("{}: {}", ssh::to_string(result.host), status.error));
  };
  const auto machines = ask_machines(*remote, *killfile, all_machines(*killfile), look, kPatience);
  if (!silent.empty())
    console.note(
        fmt::format("how {} is doing is not known: {}{}", run_id, silent.front(),
                    silent.size() > 1 ? fmt::format(", and {} others", silent.size() - 1) : ""));
  if (record) {
    note_end(console, run_id, machines);
  } else {
    try {
      record = record_on_host(*remote, *killfile);
    } catch (const std::exception& error) {  // the host may have written anything
      console.note(error.what());
    }
    if (!record) record = record_of(*killfile);
  }
  add_end(machines, *record);
  if (!record->end) {
    record->state_now = states_text(machines);
    record->is_state_known =
        std::ranges::none_of(machines, [](const MachineStatus& each) { return each.is_silent(); });
  }
  return *record;
}

}  // namespace dtool::cli
