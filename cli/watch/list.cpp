// SPDX-License-Identifier: MIT
// `dtool list`: recorded runs, newest first; with --state also the state of each.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/failures.h"
#include "cli/host_options.h"
#include "cli/recorded.h"
#include "cli/remove_run.h"
#include "cli/terminal_text.h"
#include "cli/watch/list_table.h"
#include "cli/watch/run_states.h"
#include "ssh/fleet.h"
#include "ssh/host.h"

namespace dtool::cli {
namespace {

/// Empty without --state.
struct Answers : AskedStates {
  std::size_t pruned = 0;  ///< runs
};

class ListAction : public Action {
 public:
  void add_options(Options& command) override;
  int run(Invocation& invocation) override;

 private:
  void show(Console& console, const std::vector<killfiles::Killfile>& runs,
            const Answers& answers) const;
  void show_json(Console& console, const std::vector<killfiles::Listed>& listed,
                 const Answers& answers) const;

  std::size_t prune(Invocation& invocation, const std::vector<killfiles::Killfile>& runs,
                    const Answers& answers) const;

  HostOptions hosts_;
  std::vector<Option> of_asking_;  ///< options about connections
  bool state_ = false;
  bool prune_ = false;
};

void ListAction::add_options(Options& command) {
  command.add_flag("--state", state_, "ask the hosts for the state of each run");
  command.add_flag(
      "--prune", prune_,
      "ask as --state does, and delete the copies of the code of runs that have ended");
  add_connect_options(command, hosts_);
  for (const char* const flag :
       {"--connect_timeout", "--width", "--ssh_cmd", "--ssh_program", "--ask"})
    of_asking_.push_back(command.find(flag).value());
  command.find("--connect_timeout")
      .value()
      .description(fmt::format("seconds to wait for a connection ({})", kSecondsForStates));
}

void ListAction::show(Console& console, const std::vector<killfiles::Killfile>& runs,
                      const Answers& answers) const {
  const bool fits = console.is_terminal(To::out);
  const auto lines =
      list_table(console, runs, answers.states, fits ? terminal_size(STDOUT_FILENO).columns : 0);
  for (const std::string& line : lines) console.say(line);
}

void ListAction::show_json(Console& console, const std::vector<killfiles::Listed>& listed,
                           const Answers& answers) const {
  nlohmann::json list = nlohmann::json::array();
  std::size_t place = 0;
  for (const auto& run : listed) {
    nlohmann::json entry = {{"killfile", run.file.string()}};
    if (run.killfile) {
      entry.update({{"run_id", run.killfile->run_id},
                    {"created", run.killfile->created},
                    {"what", run.killfile->what},
                    {"chain", run.killfile->chain},
                    {"rerun_of", run.killfile->rerun_of},
                    {"machines", run.killfile->machines.size()},
                    {"hosts", folded_hosts(*run.killfile)}});
      if (state_) {
        std::map<std::string, int> counts;
        for (const MachineStatus& each : answers.states[place++]) ++counts[state_word(each)];
        entry["states"] = counts;
      }
    } else {
      entry["error"] = run.error;
    }
    list.push_back(std::move(entry));
  }
  nlohmann::json document = {{"runs", list}};
  if (prune_) document["pruned"] = answers.pruned;
  if (state_) {
    document["failures"] = nlohmann::json::array();
    for (const ssh::HostResult& each : answers.results) {
      if (!each.ok()) document["failures"].push_back(to_json(each));
    }
  }
  console.document(document);
}

/// Returns how many runs had a copy of the code.
std::size_t ListAction::prune(Invocation& invocation, const std::vector<killfiles::Killfile>& runs,
                              const Answers& answers) const {
  std::size_t pruned = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (answers.states[i].empty() || !std::ranges::all_of(answers.states[i], is_over)) continue;
    const Targets targets = recorded_targets(runs[i], hosts_, invocation.settings.users());
    const auto remote = ssh::make_fleet(targets.hosts, targets.connect);
    if (remove_on_hosts(invocation.console, *remote, runs[i], What::tree) > 0) ++pruned;
    if (remote->interrupted()) break;
  }
  invocation.console.note(
      pruned == 0 ? "no ended run has a copy of its code"
                  : fmt::format("deleted the copies of the code of {}", counted(pruned, "run")));
  return pruned;
}

int ListAction::run(Invocation& invocation) {
  Console& console = invocation.console;
  const std::vector<killfiles::Listed> listed = killfiles::list(killfile_folder());
  std::vector<killfiles::Killfile> runs;
  for (const auto& each : listed) {
    if (each.killfile) runs.push_back(*each.killfile);
  }
  Answers answers;
  state_ = state_ || prune_;
  for (const Option& each : of_asking_) {
    if (each.is_given() && !state_)
      throw UsageError(fmt::format("{} goes with --state or --prune: without them no host is asked",
                                   each.name()));
  }
  if (state_) answers = {ask_states(console, runs, hosts_, invocation.settings.users())};
  if (answers.interrupted) return kInterrupted;
  if (prune_) answers.pruned = prune(invocation, runs, answers);
  if (console.json()) {
    show_json(console, listed, answers);
  } else if (listed.empty()) {
    console.note(fmt::format("no run is recorded in {}", killfile_folder().string()));
  } else {
    show(console, runs, answers);
  }
  bool all_well =
      report_failures(console, answers.results, "asking for the states of the runs") == 0;
  for (const auto& each : listed) {
    if (each.killfile) continue;
    all_well = false;
    if (!console.json())
      console.fail(each.error, "mend it, or remove it if nothing of that run is left");
  }
  return all_well ? kAllWell : kSomeFailed;
}

}  // namespace

std::unique_ptr<Action> make_list() {
  return std::make_unique<ListAction>();
}

}  // namespace dtool::cli
