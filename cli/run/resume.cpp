// SPDX-License-Identifier: MIT
#include "cli/run/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "cli/action.h"
#include "cli/record/record.h"
#include "cli/record/record_files.h"
#include "cli/record/recorded.h"
#include "cli/watch/run_states.h"
#include "cli/watch/run_status.h"
#include "killfiles/killfile.h"
#include "killfiles/whole_file.h"
#include "ssh/fanout/fleet.h"
#include "ssh/host/child.h"

namespace dtool::cli {
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

bool is_silent(const MachineStatus& machine) {
  return machine.state == MachineState::unreachable || machine.state == MachineState::unproven;
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
    if (is_over(each) || is_silent(each)) continue;
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
  if (is_silent(machines.front()))
    throw UsageError(fmt::format("whether {} has ended is not known: {}: {}", run_id,
                                 ssh::to_string(machines.front().host), machines.front().error),
                     fmt::format("dtool status {} tells when it answers", run_id));
  for (const MachineStatus& each : machines) {
    if (is_silent(each))
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
