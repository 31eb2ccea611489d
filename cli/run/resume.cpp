// SPDX-License-Identifier: MIT
#include "cli/run/resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <set>
#include <string_view>

#include "cli/action.h"
#include "cli/record/find_run.h"
#include "cli/recorded.h"
#include "cli/run/environment/exports.h"
#include "cli/watch/run_states.h"
#include "cli/watch/run_status.h"
#include "killfiles/killfile.h"
#include "killfiles/whole_file.h"
#include "ssh/fleet.h"

namespace dtool::cli {
namespace {

constexpr const char* kExport = "--export";

/// Of one command only, or in the record in another form.
constexpr std::array<std::string_view, 14> kNotTaken = {
    "--json",  "--quiet",         "--color",   "--help",     "--dry_run", "--follow",   "--force",
    "--trace", "--config_kwargs", "--runs_on", "--hostfile", "--seed",    "--launcher", "--resume"};

std::string name_of_export(const std::string& text) {
  return text.substr(0, text.find('='));
}

/// The exports of both; the user's win.
std::vector<std::string> merged_exports(const std::vector<std::string>& recorded,
                                        const std::vector<std::string>& typed) {
  std::vector<std::string> exports;
  for (const std::string& each : recorded) {
    if (!std::ranges::count(typed, each, name_of_export)) exports.push_back(each);
  }
  exports.insert(exports.end(), typed.begin(), typed.end());
  return exports;
}

RunRecord recorded(const std::string& id) {
  const std::string run_id = complete_id(id);
  const auto record = find_record(run_id);
  if (!record || !record->flags)
    throw UsageError(
        fmt::format("{} cannot be resumed: {}", run_id,
                    record ? "an older dtool started it, and did not record its flags"
                           : "it has no record here, since an older dtool or another machine "
                             "started it"),
        "start it by hand: its outputs are in its output folder, and dtool-trainer goes on with "
        "--checkpoint latest");
  return *record;
}

bool is_next(const std::vector<std::string>& chain, const std::string& run_id) {
  return !chain.empty() && chain.back() == run_id;
}

/// The run that goes on from that one: its killfile is there before its outputs are whole, and its
/// record after it was forgotten.
std::optional<std::string> later_run(const std::string& run_id) {
  for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
    if (each.killfile && is_next(each.killfile->chain, run_id)) return each.killfile->run_id;
  }
  std::error_code none;
  for (const auto& each : std::filesystem::directory_iterator(record_folder(), none)) {
    if (each.path().extension() != ".json" || each.path().stem() == run_id) continue;
    try {
      const std::string text = killfiles::read_whole(each.path());
      if (text.find(run_id) == text.npos) continue;  // quicker than reading a thousand records
      const RunRecord record = parse_record(text, each.path().string());
      if (is_next(record.chain, run_id)) return record.run_id;
    } catch (const std::exception&) {  // spoilt, or gone since
    }
  }
  return std::nullopt;
}

/// Whether a machine's answer leaves it possible that something of the run goes on there.
bool goes_on(const MachineStatus& machine) {
  return machine.state == MachineState::running || machine.state == MachineState::pending;
}

bool is_silent(const MachineStatus& machine) {
  return machine.state == MachineState::unreachable || machine.state == MachineState::unproven;
}

}  // namespace

GivenFlags flags_to_record(GivenFlags given) {
  for (const std::string_view name : kNotTaken) given.erase(std::string(name));
  const auto exports = given.find(kExport);
  if (exports == given.end()) return given;
  std::erase_if(exports->second, [](const auto& each) { return each.find('=') != each.npos; });
  if (exports->second.empty()) given.erase(exports);
  return given;
}

Resumption::Resumption(const std::string& id) : Resumption(recorded(id)) {
  require_not_resumed(earlier_.run_id);
}

Resumption::Resumption(RunRecord record) : earlier_(std::move(record)) {
  if (earlier_.flags->contains("--seeds"))
    throw UsageError(fmt::format("{} cannot be resumed: it has a run for each of several seeds",
                                 earlier_.run_id),
                     "start a run with --seed for each that is to go on");
}

std::vector<std::string> Resumption::chain() const {
  std::vector<std::string> chain = earlier_.chain;
  chain.push_back(earlier_.run_id);
  return chain;
}

void Resumption::give_flags(Options& command) {
  const GivenFlags typed = command.given();
  names_hosts_ = typed.contains("--runs_on") || typed.contains("--hostfile");
  names_processes_ = typed.contains("--nproc_per_node") || typed.contains("--gpus");
  names_code_ = typed.contains("--code_path");
  const auto must_stay = [&typed, this](const std::string& flag, const std::string& value) {
    const auto found = typed.find(flag);
    if (found != typed.end() && found->second.back() != value)
      throw UsageError(fmt::format("{} must stay {}, as in {}, which --resume goes on from", flag,
                                   value, earlier_.run_id),
                       "leave it out, or start a run of its own");
  };
  must_stay("--launcher", earlier_.engine);
  must_stay("--seed", std::to_string(earlier_.seed));
  if (typed.contains("--seeds"))
    throw UsageError("--seeds starts a run for each seed, and --resume goes on from one run",
                     "leave one of them out");
  const auto give = [&](const std::string& flag, const std::vector<std::string>& values) {
    try {
      command.give(flag, values);
    } catch (const std::invalid_argument& fault) {
      throw UsageError(
          fmt::format("{} was started with {}: {}", earlier_.run_id, flag, fault.what()));
    }
  };
  for (const auto& [flag, values] : *earlier_.flags) {
    const bool is_of_hosts = flag == "--distributed_ip_and_port";
    if (!typed.contains(flag) && !(is_of_hosts && names_hosts_)) give(flag, values);
    if (flag == kExport && typed.contains(flag)) give(flag, merged_exports(values, typed.at(flag)));
  }
  give("--launcher", {earlier_.engine});
  give("--seed", {std::to_string(earlier_.seed)});
  if (!typed.contains("--output_dir")) give("--output_dir", {earlier_.output_dir});
  if (names_hosts_) return;
  std::vector<std::string> hosts;
  for (const RecordedMachine& each : earlier_.machines) {
    if (!std::ranges::count(hosts, each.host)) hosts.push_back(each.host);
  }
  give("--runs_on", {fmt::format("{}", fmt::join(hosts, ","))});
}

void Resumption::keep_processes(Targets& targets) const {
  if (names_hosts_ || names_processes_ || targets.hosts.size() != earlier_.machines.size()) return;
  for (std::size_t i = 0; i < targets.hosts.size(); ++i)
    targets.slots[i] = earlier_.machines[i].processes;
}

std::optional<std::string> Resumption::code_folder_on(const ssh::Host& host) const {
  if (names_code_) return std::nullopt;
  for (const RecordedMachine& each : earlier_.machines) {
    if (each.host == ssh::to_string(host)) return each.code_folder;
  }
  for (const RecordedMachine& each : earlier_.machines) {
    if (!host.is_local && !ssh::parse_host(each.host).is_local) return each.code_folder;
  }
  return std::nullopt;
}

bool Resumption::sends_code() const {
  if (names_code_) return true;
  if (earlier_.code.folder.empty()) return false;
  const std::filesystem::path here = std::filesystem::canonical(".");
  if (here == earlier_.code.folder) return true;
  throw UsageError(fmt::format("{} has the code of {}, and the current folder is {}",
                               earlier_.run_id, earlier_.code.folder, here.string()),
                   "call dtool in that folder; or give --no_sync to go on with the code that the "
                   "hosts have, or --code_path to send this one elsewhere");
}

void Resumption::require_variables(const RunPlan& plan) const {
  std::set<std::string> missing;
  for (const std::string& name : earlier_.variables) {
    if (!find_variable(plan.variables, name)) missing.insert(name);
  }
  if (missing.empty()) return;
  throw UsageError(
      fmt::format("{} exported {}, and values of exports are not recorded", earlier_.run_id,
                  fmt::join(missing, ", ")),
      fmt::format("give them again: --export {}=…", fmt::join(missing, "=… --export ")));
}

bool Resumption::require_ended(Console& console, const HostOptions& hosts,
                               const UserSettings& users) const {
  const auto file = killfiles::path_of(killfile_folder(), earlier_.run_id);
  if (!std::filesystem::exists(file)) return true;  // nothing was left when it was forgotten
  const killfiles::Killfile killfile = killfiles::read(file);
  if (!killfile.ended.empty()) return true;
  const Targets targets = recorded_targets(killfile, hosts, users);
  const auto remote = ssh::make_fleet(targets.hosts, targets.connect);
  constexpr std::chrono::seconds kPatience{20};
  const auto nobody = [](std::size_t, const ssh::HostResult&, const MachineStatus&) {};
  const auto machines = ask_machines(*remote, killfile, all_machines(killfile), nobody, kPatience);
  if (remote->interrupted()) return false;
  if (std::ranges::any_of(machines, goes_on))
    throw UsageError(
        fmt::format("{} still goes on: it is {}", earlier_.run_id, states_text(machines)),
        fmt::format("dtool kill {} ends it, after a checkpoint", earlier_.run_id));
  if (is_silent(machines.front()))
    throw UsageError(fmt::format("whether {} has ended is not known: {}: {}", earlier_.run_id,
                                 ssh::to_string(machines.front().host), machines.front().error),
                     fmt::format("dtool status {} tells when it answers", earlier_.run_id));
  for (const MachineStatus& each : machines) {
    if (is_silent(each))
      console.note(fmt::format("whether {} has ended on {} is not known: {}", earlier_.run_id,
                               ssh::to_string(each.host), each.error));
  }
  return true;
}

void require_not_resumed(const std::string& run_id) {
  const auto later = later_run(run_id);
  if (!later) return;
  throw UsageError(fmt::format("{} goes on from {} already", *later, run_id),
                   fmt::format("dtool run --resume {} goes on from that one", *later));
}

host::Descriptor lock_resuming() {
  constexpr int kPatience = 10'000;  // milliseconds; it is held for as long as writing two files
  const auto file = record_folder() / "resume.lock";
  host::Descriptor lock = host::lock_file(file.string(), kPatience);
  if (!lock.is_open())
    throw UsageError(fmt::format("{} cannot be locked: another dtool holds it", file.string()));
  return lock;
}

}  // namespace dtool::cli
