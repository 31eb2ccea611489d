// SPDX-License-Identifier: MIT
// `dtool list`: recorded runs, newest first, or those that match words; with --state also the
// state of each.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/failures.h"
#include "cli/host_options.h"
#include "cli/record/record_files.h"
#include "cli/record/recorded.h"
#include "cli/record/remove_run.h"
#include "cli/terminal_text.h"
#include "cli/watch/list_table.h"
#include "cli/watch/run_states.h"
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
  void show(Console& console, const std::vector<ListedRun>& runs) const;
  void show_json(Console& console, const std::vector<killfiles::Listed>& listed,
                 const std::vector<ListedRun>& runs, const Answers& answers) const;

  std::size_t prune(Invocation& invocation, const std::vector<killfiles::Killfile>& runs,
                    const Answers& answers) const;

  HostOptions hosts_;
  std::vector<Option> of_asking_;  ///< options about connections
  bool state_ = false;
  bool prune_ = false;
  bool utc_ = false;
  std::vector<std::string> words_;
};

void ListAction::add_options(Options& command) {
  command.add_option("WORD", words_,
                     "only runs that have all these words in their id, program, hosts, state, code "
                     "folder or branch; NAME=VALUE finds a flag or setting, too");
  command.add_flag("--state", state_, "ask the hosts for the state of each run");
  command.add_flag(
      "--prune", prune_,
      "ask as --state does, and delete the copies of the code of runs that have ended");
  command.add_flag("--utc", utc_, "times in UTC; else in this machine's time zone");
  add_connect_options(command, hosts_);
  for (const char* const flag :
       {"--connect_timeout", "--width", "--ssh_cmd", "--ssh_program", "--ask"})
    of_asking_.push_back(command.find(flag).value());
  command.find("--connect_timeout")
      .value()
      .description(fmt::format("seconds to wait for a connection ({})", kSecondsForStates));
}

void ListAction::show(Console& console, const std::vector<ListedRun>& runs) const {
  const bool fits = console.is_terminal(To::out);
  const auto lines = list_table(console, runs, utc_ ? Clock::utc : Clock::local, std::time(nullptr),
                                fits ? terminal_size(STDOUT_FILENO).columns : 0);
  for (const std::string& line : lines) console.say(line);
}

nlohmann::json entry_of(const ListedRun& run) {
  const killfiles::Killfile& killfile = run.killfile;
  nlohmann::json json = {{"run_id", killfile.run_id},
                         {"created", killfile.created},
                         {"what", killfile.what},
                         {"program", run.record ? run.record->program : std::vector<std::string>()},
                         {"end", known_end(run)},
                         {"metrics", nullptr},
                         {"validation", nullptr},
                         {"chain", killfile.chain},
                         {"rerun_of", killfile.rerun_of},
                         {"machines", killfile.machines.size()},
                         {"hosts", folded_hosts(killfile)}};
  if (run.record && run.record->end) {
    json["metrics"] = run.record->end->metrics;
    json["validation"] = run.record->end->validation;
  }
  if (run.states) {
    std::map<std::string, int> counts;
    for (const MachineStatus& each : *run.states) ++counts[state_word(each)];
    json["states"] = counts;
  }
  return json;
}

void ListAction::show_json(Console& console, const std::vector<killfiles::Listed>& listed,
                           const std::vector<ListedRun>& runs, const Answers& answers) const {
  nlohmann::json list = nlohmann::json::array();
  std::size_t place = 0;
  for (const auto& each : listed) {
    nlohmann::json entry =
        each.killfile ? entry_of(runs[place++]) : nlohmann::json{{"error", each.error}};
    entry["killfile"] = each.file.string();
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

/// What this launcher knows of a run; a record that cannot be read is none.
ListedRun as_listed(const killfiles::Killfile& killfile) {
  ListedRun run{killfile};
  if (!killfiles::is_run_id(killfile.run_id)) return run;  // AllenAct's
  try {
    run.record = find_record(killfile.run_id);
  } catch (const std::exception&) {  // `show` says why
  }
  return run;
}

/// Returns how many runs had a copy of the code.
std::size_t ListAction::prune(Invocation& invocation, const std::vector<killfiles::Killfile>& runs,
                              const Answers& answers) const {
  std::size_t pruned = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (answers.states[i].empty() || !std::ranges::all_of(answers.states[i], is_over)) continue;
    const Targets targets = recorded_targets(runs[i], hosts_, invocation.settings.users());
    const auto remote = invocation.reach(targets.hosts, targets.connect);
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
  std::vector<killfiles::Listed> listed = killfiles::list(killfile_folder());
  const bool is_empty = listed.empty();
  std::vector<ListedRun> runs;
  std::vector<killfiles::Killfile> killfiles;
  std::erase_if(listed, [&](const killfiles::Listed& each) {
    if (!each.killfile) return !words_.empty();
    ListedRun run = as_listed(*each.killfile);
    if (!matches(run, words_)) return true;
    killfiles.push_back(*each.killfile);
    runs.push_back(std::move(run));
    return false;
  });
  Answers answers;
  state_ = state_ || prune_;
  for (const Option& each : of_asking_) {
    if (each.is_given() && !state_)
      throw UsageError(fmt::format("{} goes with --state or --prune: without them no host is asked",
                                   each.name()));
  }
  if (state_) answers = {ask_states(invocation, killfiles, hosts_)};
  if (answers.interrupted) return kInterrupted;
  if (prune_) answers.pruned = prune(invocation, killfiles, answers);
  for (std::size_t i = 0; state_ && i < runs.size(); ++i) runs[i].states = answers.states[i];
  if (console.json()) {
    show_json(console, listed, runs, answers);
  } else if (is_empty) {
    console.note(fmt::format("no run is recorded in {}", killfile_folder().string()));
  } else if (listed.empty()) {
    console.note(fmt::format("no run that is recorded in {} has {}; dtool list alone shows all",
                             killfile_folder().string(), fmt::join(words_, " and ")));
  } else {
    show(console, runs);
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
