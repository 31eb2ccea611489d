// SPDX-License-Identifier: MIT
// `dtool kill`: ends every process of a run on every machine, checks that none is left, then asks
// whether to forget the run.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/kill/end_run.h"
#include "cli/options.h"
#include "cli/record/record.h"
#include "cli/record/recorded.h"
#include "cli/watch/machine_status.h"
#include "cli/watch/record_end.h"
#include "cli/watch/run_status.h"

namespace dtool::cli {
namespace {

/// A run to end, and the file it is recorded in.
struct Chosen {
  killfiles::Killfile killfile;
  std::filesystem::path file;
};

std::string title(const killfiles::Killfile& killfile, const std::filesystem::path& file) {
  return killfile.run_id.empty() ? file.filename().string() : killfile.run_id;
}

/// Whether this machine knows of the run's end.
bool has_known_end(const killfiles::Killfile& killfile) {
  if (!killfile.ended.empty()) return true;
  try {
    const auto record = killfile.run_id.empty() ? std::nullopt : find_record(killfile.run_id);
    return record && record->end;
  } catch (const std::exception&) {
    return false;  // dtool show tells why it cannot be read
  }
}

/// Where hosts do not answer any more, what is known here counts. That a run's program has ended
/// does not mean that nothing of the run is left, so the hosts are asked nevertheless.
bool has_ended(const killfiles::Killfile& killfile, const std::vector<MachineStatus>& machines) {
  const bool is_known = has_known_end(killfile);
  return !machines.empty() && std::ranges::all_of(machines, [&](const MachineStatus& each) {
    const bool cannot_be_seen = each.is_silent() || each.state == MachineState::not_started;
    return is_over(each) || (is_known && cannot_be_seen);
  });
}

std::string no_run_is_recorded() {
  return fmt::format("no run is recorded in {}", killfile_folder().string());
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

class KillAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option(
        "RUN", runs_,
        "run ids, their beginnings or tags; last, last-1; none: ask about each run that runs");
    command.add_flag("--all", all_, "every recorded run");
    command.add_option("--screen_ids_file FILE", screen_ids_file_,
                       "a killfile at another place, also one of AllenAct's");
    command.add_option("--grace", grace_, "seconds between TERM and KILL (5)")
        .check(must_be_from(0.0, 3600.0));
    command.add_flag("--yes", yes_, "end without asking; the killfile is kept (see --delete)");
    command.add_flag("--delete", delete_,
                     "delete the killfile when nothing is left, without asking");
    command.add_flag(
        "--forget", forget_,
        "delete the killfile even if something may be left, as on a host that is gone for good");
    add_connect_options(command, hosts_);
  }

  int run(Invocation& invocation) override {
    nlohmann::json report = nlohmann::json::array();
    int exit_code = kAllWell;
    const auto all = choose(invocation);
    if (!all) return kInterrupted;
    if (all_ && all->empty()) invocation.console.note(no_run_is_recorded());
    for (const Chosen& chosen : *all) {
      exit_code = std::max(exit_code, end(invocation, chosen, report));
      if (exit_code == kInterrupted) break;
    }
    if (invocation.console.json())
      invocation.console.document({{"exit_code", exit_code}, {"runs", report}});
    return exit_code;
  }

 private:
  /// Nothing after an interrupt.
  std::optional<std::vector<Chosen>> choose(Invocation& invocation) const {
    if (static_cast<int>(all_) + static_cast<int>(!runs_.empty()) +
            static_cast<int>(!screen_ids_file_.empty()) >
        1) {
      throw UsageError("RUN, --all and --screen_ids_file each say what to end", "give one of them");
    }
    if (!screen_ids_file_.empty())
      return std::vector{Chosen{killfiles::read(screen_ids_file_), screen_ids_file_}};
    if (all_) return choose_all();
    if (runs_.empty()) {
      auto running = find_running(invocation);
      if (!running) return std::nullopt;
      return ask_for_each(invocation.console, std::move(*running));
    }
    std::vector<Chosen> chosen;
    for (const std::string& id : runs_) {
      const auto found = find_one(invocation, id);
      if (!found) return std::nullopt;
      chosen.push_back(*found);
    }
    return chosen;
  }

  std::vector<Chosen> choose_all() const {
    std::vector<Chosen> chosen;
    for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
      if (!each.killfile)
        throw UsageError(each.error, "name the runs to end, or mend or remove that file");
      chosen.push_back({*each.killfile, each.file});
    }
    return chosen;
  }

  /// By what their hosts say. Nothing after an interrupt.
  std::optional<std::vector<Chosen>> without_ended(Invocation& invocation,
                                                   std::vector<Chosen> runs) const {
    std::vector<killfiles::Killfile> killfiles;
    for (const Chosen& each : runs) killfiles.push_back(each.killfile);
    const AskedStates asked = ask_states(invocation, killfiles, hosts_);
    if (asked.interrupted) return std::nullopt;
    std::size_t place = 0;
    std::erase_if(
        runs, [&](const Chosen& each) { return has_ended(each.killfile, asked.states[place++]); });
    return runs;
  }

  /// Of several runs that `id` may mean, it is about the only one that has not ended. Hosts are
  /// asked only if this machine does not know. Nothing after an interrupt.
  std::optional<Chosen> find_one(Invocation& invocation, const std::string& id) const {
    if (id.starts_with('-'))  // a number of a signal, which CLI11 takes for a value
      throw UsageError(fmt::format("kill: '{}' is no run", id),
                       "--grace says how long a program has between TERM and KILL");
    bool interrupted = false;
    const auto narrow = [&](std::vector<killfiles::Listed> found) {
      std::erase_if(found,
                    [](const auto& run) { return run.killfile && has_known_end(*run.killfile); });
      std::vector<Chosen> asked;
      for (const killfiles::Listed& run : found) {
        if (run.killfile) asked.push_back({*run.killfile, run.file});
      }
      if (asked.size() < 2) return found;
      const auto running = without_ended(invocation, asked);
      interrupted = !running;
      if (interrupted) return std::vector{found.front()};
      std::erase_if(found, [&](const killfiles::Listed& run) {
        return run.killfile && std::ranges::count(*running, run.file, &Chosen::file) == 0;
      });
      return found;
    };
    const auto is_called_all = [](const killfiles::Listed& each) {
      return each.file.filename().string().find("all") != std::string::npos;
    };
    if (id == "all" && std::ranges::none_of(killfiles::list(killfile_folder()), is_called_all))
      throw UsageError("no run 'all' is recorded", "--all ends every run");
    const killfiles::Listed found = find_recorded(id, narrow, killfiles::Parts::do_not_count);
    if (interrupted) return std::nullopt;
    if (!found.killfile) throw unreadable(found);
    return Chosen{*found.killfile, found.file};
  }

  /// Nothing after an interrupt.
  std::optional<std::vector<Chosen>> find_running(Invocation& invocation) const {
    const std::vector<Chosen> all = choose_all();
    if (all.empty()) throw UsageError(no_run_is_recorded());
    auto running = without_ended(invocation, all);
    if (!running) return std::nullopt;
    std::string ended;
    for (const Chosen& each : all) {
      if (std::ranges::count(*running, each.file, &Chosen::file) == 0)
        ended = title(each.killfile, each.file);
    }
    const std::size_t count = all.size() - running->size();
    if (count == 1) {
      invocation.console.note(
          fmt::format("{} has ended; to forget it: dtool kill {} --delete", ended, ended));
    } else if (count > 1) {
      invocation.console.note(fmt::format(
          "{} have ended (dtool list shows them); to forget one: dtool kill RUN --delete",
          counted(count, "run")));
    }
    return running;
  }

  std::vector<Chosen> ask_for_each(Console& console, std::vector<Chosen> running) const {
    if (yes_ && running.size() > 1)
      throw UsageError(fmt::format("{} run", counted(running.size(), "run")),
                       "name one (dtool list shows them), or give --all");
    if (yes_) return running;
    std::vector<Chosen> chosen;
    for (Chosen& each : running) {
      const auto answer = console.ask(fmt::format(
          "end {} ({}, started {})?", title(each.killfile, each.file),
          counted(each.killfile.machines.size(), "machine"), local_time(each.killfile.created)));
      if (!answer)
        throw UsageError("no run was named", "name one (dtool list shows them), or give --all");
      if (*answer) chosen.push_back(std::move(each));
    }
    return chosen;
  }

  int end(Invocation& invocation, const Chosen& chosen, nlohmann::json& report) const {
    Console& console = invocation.console;
    const Targets targets = recorded_targets(chosen.killfile, hosts_, invocation.settings.users());
    const auto remote = invocation.reach(targets.hosts, targets.connect);
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
    if (ended.none_left && !remote->interrupted()) ask_for_end(console, *remote, chosen.killfile);
    bool deleted = false;
    bool is_kept_unasked = false;
    try {
      if (forced_out) std::filesystem::remove(chosen.file);
      deleted = forced_out || (ended.none_left && forget(console, *remote, chosen));
    } catch (const std::filesystem::filesystem_error& error) {
      is_kept_unasked = true;
      console.fail(
          fmt::format("{} cannot be deleted: {}", chosen.file.string(), error.code().message()),
          "make its folder writable, and call dtool kill again");
    }
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
    return ended.none_left && !is_kept_unasked ? kAllWell : kSomeFailed;
  }

  bool forget(Console& console, ssh::Remote& remote, const Chosen& chosen) const {
    const bool wanted =
        delete_ || (!yes_ && !console.json() &&
                    console
                        .ask(fmt::format("delete {}? (status, logs and fetch no longer find the "
                                         "run then; its outputs stay on the hosts)",
                                         chosen.file.string()))
                        .value_or(false));
    if (!wanted) return false;
    forget_run(console, remote, chosen.killfile, chosen.file);
    return true;
  }

  HostOptions hosts_;
  std::vector<std::string> runs_;
  std::string screen_ids_file_;
  double grace_ = 5;
  bool all_ = false;
  bool yes_ = false;
  bool delete_ = false;
  bool forget_ = false;
};

}  // namespace

std::unique_ptr<Action> make_kill() {
  return std::make_unique<KillAction>();
}

}  // namespace dtool::cli
