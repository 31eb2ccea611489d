// SPDX-License-Identifier: MIT
// `dtool kill`: ends every process of a run on every machine, checks that none is left, then asks
// whether to forget the run.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/failures.h"
#include "cli/flag_values.h"
#include "cli/host_options.h"
#include "cli/kill/end_run.h"
#include "cli/record/record_end.h"
#include "cli/record/record_files.h"
#include "cli/recorded.h"
#include "cli/terminal_text.h"
#include "cli/watch/machine_status.h"
#include "ssh/fleet.h"

namespace dtool::cli {
namespace {

/// A run to end, and the file it is recorded in.
struct Chosen {
  killfiles::Killfile killfile;
  std::filesystem::path file;
};

class KillAction : public Action {
 public:
  void add_options(Options& command) override;
  int run(Invocation& invocation) override;

 private:
  std::vector<Chosen> choose(Console& console) const;
  std::vector<Chosen> choose_all() const;
  std::vector<Chosen> ask_for_each(Console& console) const;
  int end(Invocation& invocation, const Chosen& chosen, nlohmann::json& report) const;
  bool forget(Console& console, ssh::Remote& remote, const Chosen& chosen) const;

  HostOptions hosts_;
  std::vector<std::string> runs_;
  std::string screen_ids_file_;
  double grace_ = 5;
  bool all_ = false;
  bool yes_ = false;
  bool delete_ = false;
  bool forget_ = false;
};

void KillAction::add_options(Options& command) {
  command.add_option("RUN", runs_,
                     "run ids, or their beginnings; none: ask about each recorded run");
  command.add_flag("--all", all_, "every recorded run");
  command
      .add_option("--screen_ids_file", screen_ids_file_,
                  "a killfile at another place, also one of AllenAct's")
      .type_name("FILE");
  command.add_option("--grace", grace_, "seconds between TERM and KILL (5)")
      .check(must_be_from(0.0, 3600.0));
  command.add_flag("--yes", yes_, "answer every question with yes");
  command.add_flag("--delete", delete_, "delete the killfile when nothing is left, without asking");
  command.add_flag(
      "--forget", forget_,
      "delete the killfile even if something may be left, as on a host that is gone for good");
  add_connect_options(command, hosts_);
}

std::string title(const killfiles::Killfile& killfile, const std::filesystem::path& file) {
  return killfile.run_id.empty() ? file.filename().string() : killfile.run_id;
}

/// `, over since 2026-…` of a run that is known to have ended.
std::string known_end(const killfiles::Killfile& killfile) {
  std::string ended = killfile.ended;
  try {
    const auto record = killfile.run_id.empty() ? std::nullopt : find_record(killfile.run_id);
    if (ended.empty() && record && record->end) ended = record->end->at;
  } catch (const std::exception&) {
    // dtool show tells why it cannot be read.
  }
  return ended.empty() ? "" : ", over since " + ended;
}

std::string no_run_is_recorded() {
  return fmt::format("no run is recorded in {}", killfile_folder().string());
}

std::vector<Chosen> KillAction::choose_all() const {
  std::vector<Chosen> chosen;
  for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
    if (!each.killfile)
      throw UsageError(each.error, "name the runs to end, or mend or remove that file");
    chosen.push_back({*each.killfile, each.file});
  }
  return chosen;
}

std::vector<Chosen> KillAction::ask_for_each(Console& console) const {
  std::vector<Chosen> all = choose_all();
  if (all.empty()) throw UsageError(no_run_is_recorded());
  if (all.size() == 1 && yes_) return all;
  if (yes_)
    throw UsageError(fmt::format("{} runs are recorded", all.size()),
                     "name one (dtool list shows them), or give --all");
  std::vector<Chosen> chosen;
  for (const Chosen& each : all) {
    const auto answer =
        console.ask(fmt::format("end {} ({}, started {}{})?", title(each.killfile, each.file),
                                counted(each.killfile.machines.size(), "machine"),
                                each.killfile.created, known_end(each.killfile)));
    if (!answer)
      throw UsageError("no run was named", "name one (dtool list shows them), or give --all");
    if (*answer) chosen.push_back(each);
  }
  return chosen;
}

std::vector<Chosen> KillAction::choose(Console& console) const {
  if (static_cast<int>(all_) + static_cast<int>(!runs_.empty()) +
          static_cast<int>(!screen_ids_file_.empty()) >
      1) {
    throw UsageError("RUN, --all and --screen_ids_file each say what to end", "give one of them");
  }
  if (!screen_ids_file_.empty()) return {{killfiles::read(screen_ids_file_), screen_ids_file_}};
  if (all_) return choose_all();
  if (runs_.empty()) return ask_for_each(console);
  std::vector<Chosen> chosen;
  for (const std::string& id : runs_) {
    const killfiles::Listed found = find_recorded(id);
    if (!found.killfile) throw unreadable(found);
    chosen.push_back({*found.killfile, found.file});
  }
  return chosen;
}

bool KillAction::forget(Console& console, ssh::Remote& remote, const Chosen& chosen) const {
  const bool wanted =
      delete_ || yes_ ||
      (!console.json() &&
       console.ask(fmt::format("delete {}?", chosen.file.string())).value_or(false));
  if (!wanted) return false;
  forget_run(console, remote, chosen.killfile, chosen.file);
  return true;
}

/// The hosts' answers, and if the host is the problem, which host was asked and which one answered.
nlohmann::json hosts_json(const KillReport& ended) {
  nlohmann::json hosts = nlohmann::json::array();
  for (std::size_t i = 0; i < ended.results.size(); ++i) {
    nlohmann::json host = to_json(ended.results[i]);
    const FoundHost& found = ended.hosts[i];
    if (ended.results[i].failure == ssh::Failure::unproven) {
      host["recorded_host"] = to_json(found.recorded);
      host["found_host"] = to_json(found.found);
    }
    if (!found.unseen.empty()) host["unseen"] = found.unseen;
    hosts.push_back(std::move(host));
  }
  return hosts;
}

/// Reports processes that the run handed to the user's older servers: they do not have its id.
void tell_unseen(Console& console, const KillReport& ended) {
  for (std::size_t i = 0; i < ended.results.size(); ++i) {
    for (const std::string& each : ended.hosts[i].unseen)
      console.note(fmt::format("{}: {}; whether the run had them started cannot be told",
                               ssh::to_string(ended.results[i].host), each));
  }
}

int KillAction::end(Invocation& invocation, const Chosen& chosen, nlohmann::json& report) const {
  Console& console = invocation.console;
  const Targets targets = recorded_targets(chosen.killfile, hosts_, invocation.settings.users());
  const auto remote = ssh::make_fleet(targets.hosts, targets.connect);
  const KillReport ended =
      end_run(console, *remote, chosen.killfile, from_seconds(grace_), chosen.file);

  const std::string name = title(chosen.killfile, chosen.file);
  report_failures(console, ended.results, fmt::format("ending {}", name));
  const std::string forced =
      ended.forced > 0 ? fmt::format(", {} of them by KILL", ended.forced) : "";
  const std::string cancelled =
      ended.cancelled.empty() ? "" : fmt::format("{} cancelled, ", ended.cancelled);
  std::vector<ssh::Host> well;
  std::vector<ssh::Host> others;
  for (const ssh::HostResult& result : ended.results)
    (result.failure == ssh::Failure::none ? well : others).push_back(result.host);
  const bool is_all_seen =
      std::ranges::all_of(ended.hosts, [](const FoundHost& each) { return each.unseen.empty(); });
  const std::string left =
      ended.none_left
          ? is_all_seen ? "none is left" : "no process is left that is known to be the run's"
      : forget_ ? fmt::format("something may be left on {}", fold_hosts(others))
                : fmt::format("the killfile is kept for {}: call it again", fold_hosts(others));
  console.note(fmt::format("{}: {}{} ended{}{}; {}", console.styled_error(Style::bold, name),
                           cancelled, counted(static_cast<std::size_t>(ended.ended), "process"),
                           well.empty() ? "" : " on " + fold_hosts(well), forced, left));
  tell_unseen(console, ended);
  const bool forced_out = !ended.none_left && forget_ && !remote->interrupted();
  if (forced_out) std::filesystem::remove(chosen.file);
  if (ended.none_left && !remote->interrupted()) ask_for_end(console, *remote, chosen.killfile);
  const bool deleted = forced_out || (ended.none_left && forget(console, *remote, chosen));
  if (deleted) {
    const std::string left_on = forced_out ? fold_hosts(others) : "";
    note_forgotten(console, chosen.killfile.run_id, left_on);
    console.note(fmt::format("deleted {}{}", chosen.file.string(),
                             forced_out ? ", whatever may be left on " + left_on : ""));
  }
  report.push_back({{"run_id", chosen.killfile.run_id},
                    {"ended", ended.ended},
                    {"forced", ended.forced},
                    {"cancelled", ended.cancelled},
                    {"none_left", ended.none_left},
                    {"deleted", deleted},
                    {"hosts", hosts_json(ended)}});
  if (remote->interrupted()) return kInterrupted;
  return ended.none_left ? kAllWell : kSomeFailed;
}

int KillAction::run(Invocation& invocation) {
  nlohmann::json report = nlohmann::json::array();
  int exit_code = kAllWell;
  const std::vector<Chosen> all = choose(invocation.console);
  if (all_ && all.empty()) invocation.console.note(no_run_is_recorded());
  for (const Chosen& chosen : all) {
    exit_code = std::max(exit_code, end(invocation, chosen, report));
    if (exit_code == kInterrupted) break;
  }
  if (invocation.console.json())
    invocation.console.document({{"exit_code", exit_code}, {"runs", report}});
  return exit_code;
}

}  // namespace

std::unique_ptr<Action> make_kill() {
  return std::make_unique<KillAction>();
}

}  // namespace dtool::cli
