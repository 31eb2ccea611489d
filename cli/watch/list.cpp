// SPDX-License-Identifier: MIT
// `dtool list`: recorded runs, newest first, or those that match words; with --state also the
// state of each.
#include "cli/watch/list.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <exception>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/record/comparison.h"
#include "cli/record/record.h"
#include "cli/record/recorded.h"
#include "cli/watch/run_status.h"
#include "cli/watch/status_table.h"
#include "ssh/host.h"
#include "ssh/quote.h"

namespace dtool::cli {

namespace {

/// Empty without --state.
struct Answers : AskedStates {
  std::size_t pruned = 0;  ///< runs
};

nlohmann::json entry_of(const ListedRun& run) {
  const killfiles::Killfile& killfile = run.killfile;
  nlohmann::json json = to_json(killfile);
  json.update({{"program", run.record ? run.record->program : std::vector<std::string>()},
               {"end", known_end(run)},
               {"metrics", nullptr},
               {"validation", nullptr},
               {"machines", killfile.machines.size()},
               {"hosts", folded_hosts(killfile)}});
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

class ListAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option(
        "WORD", words_,
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

  int run(Invocation& invocation) override {
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
        throw UsageError(fmt::format(
            "{} goes with --state or --prune: without them no host is asked", each.name()));
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
      console.note(
          fmt::format("no run that is recorded in {} matches {}; dtool list alone shows all",
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

 private:
  void show(Console& console, const std::vector<ListedRun>& runs) const {
    const bool fits = console.is_terminal(To::out);
    const auto lines =
        list_table(console, runs, utc_ ? Clock::utc : Clock::local, std::time(nullptr),
                   fits ? terminal_size(STDOUT_FILENO).columns : 0);
    for (const std::string& line : lines) console.say(line);
  }

  void show_json(Console& console, const std::vector<killfiles::Listed>& listed,
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

  /// Returns how many runs had a copy of the code.
  std::size_t prune(Invocation& invocation, const std::vector<killfiles::Killfile>& runs,
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

  HostOptions hosts_;
  std::vector<Option> of_asking_;  ///< options about connections
  bool state_ = false;
  bool prune_ = false;
  bool utc_ = false;
  std::vector<std::string> words_;
};

}  // namespace

std::unique_ptr<Action> make_list() {
  return std::make_unique<ListAction>();
}

namespace {

/// In the order in which they stand.
struct RunColumn {
  enum : std::size_t { run, started, age, state, metric, machines, hosts, ran, kColumns };
};

/// What the last column needs to be worth more than one that can go.
constexpr std::size_t kNarrowestRan = 24;

Style style_of(const std::vector<MachineStatus>& all) {
  const auto has = [&all](auto is) { return std::ranges::any_of(all, is); };
  if (has([](const MachineStatus& each) { return !each.is_well(); })) return Style::red;
  const bool runs =
      has([](const MachineStatus& each) { return each.state == MachineState::running; });
  return runs ? Style::green : Style::plain;
}

std::string age_text(std::int64_t seconds) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 4> kUnits = {
      {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}}};
  for (const auto& [size, name] : kUnits) {
    if (seconds >= size) return fmt::format("{} {} ago", seconds / size, name);
  }
  return "now";
}

TableRow row_of(const ListedRun& listed, Clock clock, std::time_t now) {
  const killfiles::Killfile& killfile = listed.killfile;
  TableRow row{std::vector<std::string>(RunColumn::kColumns)};
  row.cells[RunColumn::run] = killfile.run_id;
  row.cells[RunColumn::started] = killfile.created;
  if (const auto time = read_time(killfile.created)) {
    row.cells[RunColumn::age] = age_text(now - *time);
    if (clock == Clock::local) row.cells[RunColumn::started] = local_time(killfile.created);
  }
  row.cells[RunColumn::metric] = last_metric(listed);
  row.cells[RunColumn::machines] = std::to_string(killfile.machines.size());
  row.cells[RunColumn::hosts] = folded_hosts(killfile);
  row.cells[RunColumn::ran] = what_ran(listed);
  if (!killfile.chain.empty()) row.cells[RunColumn::ran] += "  resumes " + killfile.chain.back();
  if (!killfile.rerun_of.empty()) row.cells[RunColumn::ran] += "  repeats " + killfile.rerun_of;
  if (!listed.states) {
    row.cells[RunColumn::state] = known_end(listed);
    const bool is_well =
        row.cells[RunColumn::state].empty() || row.cells[RunColumn::state] == kEnded;
    row.style = is_well || row.cells[RunColumn::state] == "killed" ? Style::plain : Style::red;
    return row;
  }
  row.cells[RunColumn::state] = listed.states->empty() ? "unknown" : states_text(*listed.states);
  row.style = style_of(*listed.states);
  return row;
}

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// Whether a flag of the program or a setting of the experiment has that value.
bool has_setting(const RunRecord& record, const std::string& name, const std::string& value) {
  for (std::size_t i = 0; i + 1 < record.program.size(); ++i) {
    const std::string& flag = record.program[i];
    const std::size_t dashes = std::min(flag.find_first_not_of('-'), flag.size());
    if (dashes > 0 && flag.substr(dashes) == name && record.program[i + 1] == value) return true;
  }
  if (record.experiment.empty()) return false;
  try {
    for (const auto& [key, own] : flatten_toml(record.experiment)) {
      const bool is_named = key == name || key.ends_with("." + name);
      if (is_named && (own == value || own == '"' + value + '"' || own == '\'' + value + '\''))
        return true;
    }
  } catch (const std::invalid_argument&) {  // an older dtool's
  }
  return false;
}

}  // namespace

std::string folded_hosts(const killfiles::Killfile& killfile) {
  std::vector<ssh::Host> all;
  for (const killfiles::Machine& machine : killfile.machines)
    all.push_back(ssh::parse_host(machine.host));
  return fold_hosts(all);
}

std::string what_ran(const ListedRun& run) {
  if (run.record && !run.record->program.empty())
    return without_controls(ssh::quote_all(run.record->program));
  const auto& words = run.killfile.command_line;
  const auto dashes = std::ranges::find(words, "--");
  if (dashes != words.end())
    return without_controls(ssh::quote_all({std::next(dashes), words.end()}));
  return without_controls(run.killfile.what);
}

std::string known_end(const ListedRun& run) {
  if (run.record && run.record->end) return without_controls(run.record->end->state);
  return run.killfile.ended.empty() ? "" : "killed";
}

std::string last_metric(const ListedRun& run) {
  constexpr std::array<std::string_view, 5> kPosition = {"epoch", "step", "time", "seed", "rank"};
  constexpr std::array<std::string_view, 5> kTelling = {"succ", "acc", "rew", "return", "loss"};
  if (!run.record || !run.record->end) return "";
  for (const nlohmann::json* line : {&run.record->end->validation, &run.record->end->metrics}) {
    std::vector<std::pair<std::size_t, std::string>> found;
    for (const auto& [name, value] : line->items()) {
      if (!value.is_number() || std::ranges::count(kPosition, name) != 0) continue;
      const auto word = std::ranges::find_if(
          kTelling, [&](std::string_view each) { return name.find(each) != name.npos; });
      found.emplace_back(word - kTelling.begin(),
                         fmt::format("{} {:.4g}", name, value.get<double>()));
    }
    if (found.empty()) continue;
    return without_controls(std::ranges::min(found).second);
  }
  return "";
}

bool matches(const ListedRun& run, const std::vector<std::string>& words) {
  std::string all = fmt::format("{}\n{}\n{}\n{}\n{}", run.killfile.run_id, what_ran(run),
                                folded_hosts(run.killfile), known_end(run), run.killfile.code_path);
  for (const killfiles::Machine& machine : run.killfile.machines) all += "\n" + machine.host;
  if (run.record) all += "\n" + run.record->code.branch + "\n" + run.record->code.commit;
  all = in_lower_case(all);
  return std::ranges::all_of(words, [&](const std::string& word) {
    const std::size_t sign = word.find('=');
    return all.find(in_lower_case(word)) != all.npos ||
           (sign != word.npos && run.record &&
            has_setting(*run.record, word.substr(0, sign), word.substr(sign + 1)));
  });
}

std::vector<std::string> list_table(const Console& console, const std::vector<ListedRun>& runs,
                                    Clock clock, std::time_t now, std::size_t columns) {
  std::vector<TableRow> rows;
  std::size_t longest = 0;
  for (const ListedRun& each : runs) {
    rows.push_back(row_of(each, clock, now));
    longest = std::max(longest, length(rows.back().cells[RunColumn::ran]));
  }
  const TableForm form{{{.title = "RUN", .stays = true},
                        {.title = "STARTED"},
                        {.title = "AGE"},
                        {.title = "STATE", .stays = true},
                        {.title = "METRIC"},
                        {.title = "MACHINES", .is_number = true},
                        {.title = "HOSTS", .widest = 20},
                        {.title = "RAN"}},
                       RunColumn::state,
                       {RunColumn::started, RunColumn::machines, RunColumn::hosts,
                        RunColumn::metric, RunColumn::age},
                       std::min(longest, kNarrowestRan)};
  return table_lines(console, form, rows, columns);
}

}  // namespace dtool::cli
