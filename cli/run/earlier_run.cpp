// SPDX-License-Identifier: MIT
#include "cli/run/earlier_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "cli/action.h"
#include "cli/copy/copy_to_hosts.h"
#include "cli/plan/plan.h"
#include "cli/record/record.h"
#include "cli/record/recorded.h"
#include "cli/watch/find_run.h"
#include "cli/watch/run_status.h"
#include "killfiles/killfile.h"
#include "killfiles/whole_file.h"
#include "ssh/fanout/fleet.h"
#include "ssh/host/child.h"

namespace dtool::cli {

namespace {

constexpr const char* kExport = "--export";

/// Of one command only, or in the record in another form.
constexpr std::array<std::string_view, 18> kNotTaken = {
    "--json",          "--quiet",   "--color",    "--help",
    "--dry_run",       "--follow",  "--force",    "--trace",
    "--config_kwargs", "--runs_on", "--hostfile", "--seed",
    "--launcher",      "--resume",  "--resync",   "--broadcast_outputs",
    "--exclude_hosts", "--pick"};
/// About the sending of a code folder, which a repeated run does not do.
constexpr std::array<std::string_view, 4> kOfSending = {"--exclude", "--no_sync", "--own_tree",
                                                        "--in_place"};

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

RunRecord recorded(const std::string& id, Start start) {
  const std::string run_id = complete_id(id);
  const auto record = find_record(run_id);
  if (!record || !record->flags)
    throw UsageError(
        fmt::format("{} cannot be {}: {}", run_id, verb_of(start),
                    record ? "an older dtool started it, and did not record its flags"
                           : "it has no record here, since an older dtool or another machine "
                             "started it"),
        start == Start::rerun
            ? fmt::format("start it by hand; dtool show {} tells what is known of it", run_id)
            : "start it by hand: its outputs are in its output folder, and dtool-trainer goes on "
              "with --checkpoint latest");
  return *record;
}

}  // namespace

GivenFlags flags_to_record(GivenFlags given) {
  for (const std::string_view name : kNotTaken) given.erase(std::string(name));
  if (const auto data = given.find("--data"); data != given.end())
    std::ranges::transform(data->second, data->second.begin(), data_to_record);
  const auto exports = given.find(kExport);
  if (exports == given.end()) return given;
  std::erase_if(exports->second, [](const auto& each) { return each.find('=') != each.npos; });
  if (exports->second.empty()) given.erase(exports);
  return given;
}

EarlierRun::EarlierRun(const std::string& id, Start start)
    : EarlierRun(recorded(id, start), start) {
  if (start_ == Start::resumed) require_not_resumed(record_.run_id);
}

EarlierRun::EarlierRun(RunRecord record, Start start) : record_(std::move(record)), start_(start) {
  if (start_ == Start::resumed && record_.flags->contains("--seeds"))
    throw UsageError(
        fmt::format("{} cannot be resumed: it has a run for each of several seeds", record_.run_id),
        "start a run with --seed for each that is to go on");
  if (start_ == Start::rerun && !record_.chain.empty())
    throw UsageError(
        fmt::format("{} cannot be rerun: it went on from {}, and the outputs that it "
                    "began with have changed since",
                    record_.run_id, record_.chain.back()),
        fmt::format("dtool rerun {} does all of it again, from the start", record_.chain.front()));
}

std::vector<std::string> EarlierRun::chain() const {
  std::vector<std::string> chain = record_.chain;
  chain.push_back(record_.run_id);
  return chain;
}

void EarlierRun::give_flags(Options& command) {
  typed_ = command.given();
  const bool names_hosts = typed_.contains("--runs_on") || typed_.contains("--hostfile");
  const auto must_stay = [this](const std::string& flag, const std::string& value) {
    const auto found = typed_.find(flag);
    if (found != typed_.end() && found->second.back() != value)
      throw UsageError(
          fmt::format("{} must stay {}, as in {}, which {}", flag, value, record_.run_id,
                      start_ == Start::rerun ? "is to be repeated" : "--resume goes on from"),
          "leave it out, or start a run of its own");
  };
  must_stay("--launcher", record_.engine);
  if (start_ == Start::resumed) {
    must_stay("--seed", std::to_string(record_.seed.value_or(0)));
    if (typed_.contains("--seeds"))
      throw UsageError("--seeds starts a run for each seed, and --resume goes on from one run",
                       "leave one of them out");
  }
  const auto give = [&](const std::string& flag, const std::vector<std::string>& values) {
    try {
      command.give(flag, values);
    } catch (const std::invalid_argument& fault) {
      throw UsageError(
          fmt::format("{} was started with {}: {}", record_.run_id, flag, fault.what()));
    }
  };
  bool has_seed = typed_.contains("--seed") || typed_.contains("--seeds");
  for (const auto& [flag, values] : *record_.flags) {
    if (start_ == Start::rerun && std::ranges::count(kOfSending, flag)) continue;
    const bool is_of_hosts = flag == "--distributed_ip_and_port";
    const bool is_of_seed = flag == "--seeds" && has_seed;
    if (!typed_.contains(flag) && !(is_of_hosts && names_hosts) && !is_of_seed) {
      give(flag, values);
      has_seed |= flag == "--seeds";
    }
    if (flag == kExport && typed_.contains(flag))
      give(flag, merged_exports(values, typed_.at(flag)));
  }
  for (const auto& [row, value, usual] : killfiles::tell(record_)) {
    const std::string flag = row.flag;
    const bool is_decided = typed_.contains(flag) || (flag == "--seed" && has_seed);
    const bool is_taken = !flag.empty() && (row.goes_on || start_ == Start::rerun);
    if (is_taken && !value.empty() && !is_decided) give(flag, {value});
  }
  if (names_hosts) return;
  for (const char* const flag : {"--exclude_hosts", "--pick"}) {
    if (typed_.contains(flag))
      throw UsageError(fmt::format("{} is not for the recorded hosts of {}", flag, record_.run_id),
                       "--runs_on names other hosts");
  }
  std::vector<std::string> hosts;
  for (const RecordedMachine& each : record_.machines) {
    if (!std::ranges::count(hosts, each.host)) hosts.push_back(each.host);
  }
  give("--runs_on", {fmt::format("{}", fmt::join(hosts, ","))});
}

void EarlierRun::keep_processes(Targets& targets) const {
  const auto is_typed = [this](const char* flag) { return typed_.contains(flag); };
  const bool names_hosts = is_typed("--runs_on") || is_typed("--hostfile");
  // Their number depends on the GPUs.
  const bool names_processes = is_typed("--nproc_per_node") || is_typed("--gpus");
  const bool stays = start_ == Start::rerun || !names_hosts;
  if (!stays || names_processes || targets.hosts.size() != record_.machines.size()) return;
  for (std::size_t i = 0; i < targets.hosts.size(); ++i) {
    // A hostfile tells the number of processes.
    const bool is_told = names_hosts && targets.slots[i].has_value();
    if (!is_told && record_.machines[i].processes > 0)
      targets.slots[i] = record_.machines[i].processes;
  }
}

std::optional<std::string> EarlierRun::code_folder_on(const ssh::Host& host) const {
  if (typed_.contains("--code_path")) return std::nullopt;
  for (const RecordedMachine& each : record_.machines) {
    if (each.host == ssh::to_string(host)) return each.code_folder;
  }
  for (const RecordedMachine& each : record_.machines) {
    if (!host.is_local && !ssh::parse_host(each.host).is_local) return each.code_folder;
  }
  return std::nullopt;
}

bool EarlierRun::sends_code() const {
  if (typed_.contains("--code_path")) return true;
  if (record_.code.folder.empty()) return false;
  const std::filesystem::path here = std::filesystem::canonical(".");
  if (here == record_.code.folder) return true;
  throw UsageError(fmt::format("{} has the code of {}, and the current folder is {}",
                               record_.run_id, record_.code.folder, here.string()),
                   "call dtool in that folder; or give --no_sync to go on with the code that the "
                   "hosts have, or --code_path to send this one elsewhere");
}

GivenFlags EarlierRun::flags_of_rerun(GivenFlags given) const {
  for (const char* flag : {"--env_file", "--environment"}) {
    if (!typed_.contains(flag) || record_.code.folder.empty()) continue;
    for (std::string& file : given[flag]) file = std::filesystem::absolute(file).string();
  }
  for (const auto& [flag, values] : *record_.flags) {
    if (std::ranges::count(kOfSending, flag) > 0) given.emplace(flag, values);
  }
  return given;
}

std::optional<std::filesystem::path> EarlierRun::find_file(
    const std::string& flag, const std::string& file, const std::filesystem::path& code) const {
  const std::filesystem::path path(file);
  const bool is_as_given = typed_.contains(flag) || path.is_absolute();
  if (file.empty() || is_as_given || record_.code.folder.empty()) return path;
  std::error_code unseen;
  for (const std::filesystem::path& folder : {code, std::filesystem::path(record_.code.folder)}) {
    if (!folder.empty() && std::filesystem::is_regular_file(folder / path, unseen))
      return folder / path;
  }
  return std::nullopt;
}

void EarlierRun::require_variables(const RunPlan& plan) const {
  std::set<std::string> missing;
  for (const std::string& name : record_.variables) {
    if (!find_variable(plan.variables, name)) missing.insert(name);
  }
  if (missing.empty()) return;
  throw UsageError(
      fmt::format("{} exported {}, and values of exports are not recorded", record_.run_id,
                  fmt::join(missing, ", ")),
      fmt::format("give them again: --export {}=…", fmt::join(missing, "=… --export ")));
}

namespace {

bool is_next(const std::vector<std::string>& chain, const std::string& run_id) {
  return !chain.empty() && chain.back() == run_id;
}

/// The run that goes on from that one: its killfile is there before its outputs are whole, and its
/// record after it was forgotten.
std::optional<std::string> later_run(const std::string& run_id) {
  for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
    if (each.killfile && is_next(each.killfile->chain, run_id)) return each.killfile->run_id;
  }
  for (const std::string& id : recorded_ids()) {
    if (id == run_id) continue;
    try {
      const std::string text = killfiles::read_whole(record_path(id));
      if (text.find(run_id) == text.npos) continue;  // quicker than reading a thousand records
      const RunRecord record = parse_record(text, record_path(id).string());
      if (is_next(record.chain, run_id)) return record.run_id;
    } catch (const std::exception&) {  // spoilt, or gone since
    }
  }
  return std::nullopt;
}

/// Where the session has recorded the end: it says its last words for some seconds.
bool is_leaving(const MachineStatus& machine) {
  return machine.state == MachineState::exited && machine.processes > 0;
}

}  // namespace

std::string why_not_ended(const std::vector<MachineStatus>& machines) {
  const auto is_at_work = [](const MachineStatus& each) {
    return each.state == MachineState::running || each.state == MachineState::pending;
  };
  if (std::ranges::any_of(machines, is_at_work)) return "it is " + states_text(machines);
  for (const MachineStatus& each : machines) {
    if (is_over(each) || each.is_silent()) continue;
    const std::string host = ssh::to_string(each.host);
    if (each.processes > 0)
      return fmt::format("{} of its processes {} left on {}", each.processes,
                         each.processes == 1 ? "is" : "are", host);
    return fmt::format("on {} it is {}, and may begin yet", host, state_text(each));
  }
  return "";
}

bool require_ended(Console& console, const std::string& run_id, const HostOptions& hosts,
                   const UserSettings& users, const std::shared_ptr<ssh::SilentHosts>& silent) {
  const auto file = killfiles::path_of(killfile_folder(), run_id);
  if (!std::filesystem::exists(file)) return true;  // nothing was left when it was forgotten
  const killfiles::Killfile killfile = killfiles::read(file);
  if (!killfile.ended.empty()) return true;
  Targets targets = recorded_targets(killfile, hosts, users);
  targets.connect.silent = silent;
  const auto remote = ssh::make_fleet(targets.hosts, targets.connect);
  constexpr std::chrono::seconds kPatience{20};
  const auto nobody = [](std::size_t, const ssh::HostResult&, const MachineStatus&) {};
  const auto ask = [&] {
    return ask_machines(*remote, killfile, all_machines(killfile), nobody, kPatience);
  };
  auto machines = ask();
  constexpr int kLooks = 20;  // a second apart
  for (int i = 0; i < kLooks && !remote->interrupted(); ++i) {
    if (std::ranges::none_of(machines, is_leaving)) break;
    host::pause(std::chrono::seconds(1));
    machines = ask();
  }
  if (remote->interrupted()) return false;
  if (const std::string why = why_not_ended(machines); !why.empty())
    throw UsageError(fmt::format("{} still goes on: {}", run_id, why),
                     fmt::format("dtool kill {} ends it, after a checkpoint", run_id));
  if (machines.front().is_silent())
    throw UsageError(fmt::format("whether {} has ended is not known: {}: {}", run_id,
                                 ssh::to_string(machines.front().host), machines.front().error),
                     fmt::format("dtool status {} tells when it answers", run_id));
  for (const MachineStatus& each : machines) {
    if (each.is_silent())
      console.note(fmt::format("whether {} has ended on {} is not known: {}", run_id,
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
