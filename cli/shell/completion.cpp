// SPDX-License-Identifier: MIT
#include "cli/shell/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/command_line.h"
#include "cli/completion_scripts.h"
#include "cli/console.h"
#include "cli/plan/experiment.h"
#include "cli/record/recorded.h"
#include "cli/settings.h"
#include "ssh/machine/files.h"

namespace dtool::cli {

namespace {

/// The command line as far as it was read: which command, and what the last word belongs to.
struct Cursor {
  const CLI::App* app = nullptr;
  const CLI::Option* waiting = nullptr;  ///< the flag whose value the last word is
  /// The command line's words before the last word that are neither flags nor their values.
  std::vector<std::string> positionals;
  std::vector<const CLI::Option*> given;
  bool is_program = false;  ///< the last word stands after `--`
};

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* each : app.get_subcommands({})) {
    if (each->get_name() == name) return each;
  }
  return nullptr;
}

Cursor read_cursor(const CLI::App& app, const std::vector<std::string>& words) {
  Cursor cursor;
  cursor.app = &app;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    const CLI::Option* const waiting = std::exchange(cursor.waiting, nullptr);
    if (waiting != nullptr) continue;
    if (word == "--") {
      cursor.is_program = true;
      return cursor;
    }
    if (word.starts_with('-') && word.size() > 1) {
      const std::string flag = with_known_spelling(word);
      const CLI::Option* option = cursor.app->get_option_no_throw(flag.substr(0, flag.find('=')));
      if (option == nullptr) continue;
      cursor.given.push_back(option);
      const bool has_value = flag.find('=') != flag.npos;
      if (!has_value && option->get_items_expected_min() > 0) cursor.waiting = option;
    } else if (const CLI::App* command = find_command(*cursor.app, word)) {
      cursor.app = command;
    } else if (cursor.app != &app || word != "help") {
      cursor.positionals.push_back(word);
    }
  }
  return cursor;
}

/// The names in `WHEN:{auto,always,never}`, as Option::one_of writes it.
std::vector<Candidate> members_of(const std::string& type) {
  const std::size_t begin = type.find('{');
  const std::size_t end = type.rfind('}');
  std::vector<Candidate> members;
  if (begin == type.npos || end == type.npos) return members;
  std::string name;
  for (const char each : type.substr(begin + 1, end - begin - 1) + ",") {
    if (each != ',') {
      name += each;
    } else {
      members.push_back({std::exchange(name, ""), ""});
    }
  }
  return members;
}

/// Candidates for the part after the last comma, where values are lists.
std::vector<Candidate> in_list(std::vector<Candidate> candidates, const std::string& typed) {
  const std::size_t comma = typed.rfind(',');
  if (comma == typed.npos) return candidates;
  for (Candidate& each : candidates) each.word.insert(0, typed.substr(0, comma + 1));
  return candidates;
}

/// The possible values of an option, from the name that --help has for its value.
Completion values_of(const CLI::Option& option, const std::string& typed, const Cursor& cursor,
                     const LiveValues& live) {
  const std::string type = option.get_type_name();
  const std::string name =
      option.get_positional() ? option.get_name() : type.substr(0, type.find(':'));
  if (type.find('{') != type.npos) return {members_of(type), Files::no};
  if (name == "RUN") return {live.runs(), Files::no};
  if (name == "RUN|HOST") {
    std::vector<Candidate> all = live.runs();
    std::ranges::copy(live.hosts(), std::back_inserter(all));
    return {all, Files::no};
  }
  if (name == "HOSTS") return {in_list(live.hosts(), typed), Files::no};
  if (name == "EXPERIMENT") return {live.experiments(), Files::yes};
  if (option.check_lname("machine"))
    return {
        in_list(live.machines(cursor.positionals.empty() ? "" : cursor.positionals.front()), typed),
        Files::no};
  const bool is_file = name == "FILE" || name == "PATH" || name == "DEST" || name == "FOLDER";
  return {{}, is_file ? Files::yes : Files::no};
}

/// The positional that comes next; the last one may take several words.
const CLI::Option* next_positional(const Cursor& cursor) {
  std::size_t before = cursor.positionals.size();
  for (const CLI::Option* option : cursor.app->get_options()) {
    if (!option->get_positional()) continue;
    if (option->get_items_expected_max() > 1 || before == 0) return option;
    --before;
  }
  return nullptr;
}

/// All flags, in the spelling that was begun: `--runs-` goes on as `--runs-on`.
std::vector<Candidate> flags_of(const Cursor& cursor, const std::string& typed) {
  const bool hyphens = typed.size() > 2 && typed.find('-', 2) != typed.npos;
  std::vector<Candidate> flags;
  for (const CLI::Option* option : cursor.app->get_options()) {
    const bool repeats = option->get_items_expected_max() > 1;
    if (!repeats && std::ranges::find(cursor.given, option) != cursor.given.end()) continue;
    for (std::string name : option->get_lnames()) {
      if (hyphens) std::ranges::replace(name, '_', '-');
      flags.push_back({"--" + name, option->get_description()});
    }
  }
  return flags;
}

std::vector<Candidate> commands_of(const CLI::App& app) {
  std::vector<Candidate> commands;
  for (const CLI::App* each : app.get_subcommands({}))
    commands.push_back({each->get_name(), each->get_description()});
  return commands;
}

Completion unfiltered(const CLI::App& app, const Cursor& cursor, const std::string& typed,
                      const LiveValues& live) {
  if (cursor.is_program) return {{}, Files::yes};
  if (cursor.waiting != nullptr) return values_of(*cursor.waiting, typed, cursor, live);
  if (const std::size_t equals = typed.find('='); typed.starts_with("--") && equals != typed.npos) {
    const CLI::Option* option =
        cursor.app->get_option_no_throw(with_known_spelling(typed).substr(0, equals));
    if (option == nullptr) return {};
    Completion values = values_of(*option, typed.substr(equals + 1), cursor, live);
    for (Candidate& each : values.candidates) each.word.insert(0, typed.substr(0, equals + 1));
    return values;
  }
  if (typed.starts_with('-')) return {flags_of(cursor, typed), Files::no};
  if (cursor.app == &app) return {commands_of(app), Files::no};
  const CLI::Option* positional = next_positional(cursor);
  if (positional != nullptr) return values_of(*positional, typed, cursor, live);
  return {flags_of(cursor, typed), Files::no};
}

}  // namespace

Completion complete(const CLI::App& app, const std::vector<std::string>& words,
                    const LiveValues& live) {
  if (words.empty()) return {commands_of(app), Files::no};
  const std::string& typed = words.back();
  const Cursor cursor = read_cursor(app, words);
  Completion completion = unfiltered(app, cursor, typed, live);
  std::erase_if(completion.candidates,
                [&typed](const Candidate& each) { return !each.word.starts_with(typed); });
  if (cursor.waiting == nullptr && cursor.app != &app) {
    // A run that was named is not named again.
    std::erase_if(completion.candidates, [&cursor](const Candidate& each) {
      return std::ranges::find(cursor.positionals, each.word) != cursor.positionals.end();
    });
  }
  return completion;
}

std::string to_lines(const Completion& completion) {
  std::string lines;
  for (const Candidate& each : completion.candidates) {
    // A word with a line end or a tab would be read as two; the terminal would obey others.
    if (printable(each.word, Allowed::nothing) != each.word) continue;
    lines += each.word + (each.about.empty() ? "" : "\t" + without_controls(each.about)) + "\n";
  }
  return lines + (completion.files == Files::yes ? ":files\n" : "");
}

// The values that completion looks up: recorded runs, their hosts and machines, groups,
// experiments.

namespace {

using Candidates = std::vector<Candidate>;

/// The result of `look_up`, or nothing if it fails.
template <typename LookUp>
Candidates quietly(const LookUp& look_up) {
  try {
    return look_up();
  } catch (const std::exception&) {
    return {};
  }
}

Candidates recorded_runs() {
  Candidates runs;
  for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
    if (!each.killfile || each.killfile->run_id.empty()) continue;
    runs.push_back(
        {each.killfile->run_id, fmt::format("{}, {}", local_time(each.killfile->created),
                                            counted(each.killfile->machines.size(), "machine"))});
  }
  return runs;
}

/// What the project's file says is offered once the user has accepted it.
Candidates groups() {
  SettingsFiles files(ssh::home_folder() / ".dtool" / "config.toml", "dtool.toml");
  const Settings* settings = &files.users().settings;
  try {
    settings = &files.all();
  } catch (const std::exception&) {  // the file is not accepted, or wrong
  }
  Candidates all;
  // Where its hosts stand elsewhere, that is not looked up: TAB runs nothing.
  for (const auto& [name, group] : settings->groups)
    all.push_back({"@" + name, group.from.empty() ? group.hosts : "from " + group.from});
  return all;
}

Candidates recorded_hosts() {
  Candidates hosts;
  for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
    if (!each.killfile) continue;
    for (const killfiles::Machine& machine : each.killfile->machines) {
      const Candidate host{machine.host, "of a recorded run"};
      if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
    }
  }
  return hosts;
}

Candidates known_hosts() {
  Candidates all = quietly(groups);
  for (Candidate& each : quietly(recorded_hosts)) all.push_back(std::move(each));
  const Candidate local{"local", "this machine, without SSH"};
  std::erase_if(all, [&local](const Candidate& each) { return each.word == local.word; });
  all.push_back(local);
  return all;
}

Candidates experiments() {
  Candidates all;
  for (const std::string& name : shipped_experiments()) all.push_back({name, "comes with dtool"});
  return all;
}

Candidates machines_of(const std::string& run) {
  Candidates all;
  for (const killfiles::Machine& machine : recorded_run(run).machines)
    all.push_back({std::to_string(machine.id), machine.host});
  return all;
}

}  // namespace

LiveValues live_values() {
  LiveValues live;
  live.runs = [] { return quietly(recorded_runs); };
  live.hosts = known_hosts;
  live.experiments = [] { return quietly(experiments); };
  live.machines = [](const std::string& run) {
    return quietly([&run] { return machines_of(run); });
  };
  return live;
}

// `dtool completion`: prints the script that completes dtool's commands in a shell.

namespace {

class CompletionAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option("SHELL", shell_, "bash, zsh or fish")
        .one_of({"bash", "zsh", "fish"})
        .required();
  }

  int run(Invocation& invocation) override {
    const std::map<std::string, std::string_view> scripts = {
        {"bash", completion_scripts::kBash_completion},
        {"zsh", completion_scripts::kZsh_completion},
        {"fish", completion_scripts::kFish_completion}};
    if (invocation.console.json()) {
      invocation.console.document({{"shell", shell_}, {"script", scripts.at(shell_)}});
    } else {
      invocation.console.write(scripts.at(shell_));
    }
    return kAllWell;
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Action> make_completion() {
  return std::make_unique<CompletionAction>();
}

}  // namespace dtool::cli
