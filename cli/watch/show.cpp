// SPDX-License-Identifier: MIT
// `dtool show`: what a run was made of, and how it ended.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/record/comparison.h"
#include "cli/watch/find_run.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

std::string describe_code(const RecordedCode& code) {
  if (code.folder.empty() && code.commit.empty()) return "none was sent";
  std::string text = code.folder;
  if (!code.commit.empty())
    text += fmt::format("{}commit {}{}", text.empty() ? "" : ", ", code.commit,
                        code.branch.empty() ? "" : " of " + code.branch);
  if (code.files > 0) text += fmt::format(", {}", counted(code.files, "file"));
  return text;
}

std::string describe_edits(const RecordedCode& code) {
  if (!code.is_dirty) return "";
  std::vector<std::string> names;
  for (const auto& [name, part] : files_of_diff(code.diff)) names.push_back(name);
  std::string text = fmt::format("{}", fmt::join(names, " "));
  if (!code.diff_left_out.empty())
    text += fmt::format("{}not recorded: {}", text.empty() ? "" : "; ", code.diff_left_out);
  if (!code.deleted.empty())
    text +=
        fmt::format("{}{} deleted", text.empty() ? "" : "; ", counted(code.deleted.size(), "file"));
  if (!code.untracked.empty())
    text += fmt::format("{}{} unknown to git", text.empty() ? "" : "; ",
                        counted(code.untracked.size(), "file"));
  return text;
}

std::string describe_machine(const RecordedMachine& machine) {
  std::vector<std::string> parts = {machine.host};
  if (!machine.identity.name.empty() && machine.identity.name != machine.host)
    parts.push_back(machine.identity.name);
  if (machine.processes > 0)
    parts.push_back(counted(static_cast<std::size_t>(machine.processes), "process"));
  if (machine.threads > 0) parts.push_back(fmt::format("OMP_NUM_THREADS {}", machine.threads));
  if (machine.cores > 0) parts.push_back(counted(static_cast<std::size_t>(machine.cores), "core"));
  if (machine.memory > 0)
    parts.push_back(fmt::format("{:.1f} GiB", static_cast<double>(machine.memory) / (1 << 30)));
  std::map<std::string, int> gpus;
  for (const std::string& each : machine.gpus) ++gpus[each];
  for (const auto& [name, count] : gpus) parts.push_back(fmt::format("{} x {}", count, name));
  if (!machine.driver.empty()) parts.push_back("driver " + machine.driver);
  if (!machine.trainer.empty()) parts.push_back(machine.trainer);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string describe_metrics(const nlohmann::json& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics.items()) {
    if (value.is_number() && name != "time")
      text += fmt::format("{}{} {}", text.empty() ? "" : "  ", name, metric_text(value));
  }
  return text;
}

/// `3.11.2, 46 packages`
std::string describe_python(const std::string& packages) {
  constexpr std::string_view kName = "python ";
  if (!packages.starts_with(kName)) return "";
  const std::string version = packages.substr(kName.size(), packages.find('\n') - kName.size());
  const auto lines = static_cast<std::size_t>(std::ranges::count(packages, '\n'));
  return fmt::format("{}, {}", version, counted(std::max<std::size_t>(lines, 1) - 1, "package"));
}

void tell(Console& console, const RunRecord& record) {
  // A value may come from a host, and is to be one line.
  const auto row = [&console](std::string_view name, std::string value) {
    if (value.empty()) return;
    std::ranges::replace(value, '\n', ' ');
    console.say(
        fmt::format("{}  {}", console.styled(Style::bold, fmt::format("{:<10}", name)), value));
  };
  row("run", record.run_id);
  row("started", fmt::format("{} by {}", local_time(record.created), record.launcher));
  row("command", ssh::quote_all(record.command_line));
  if (!record.is_of_killfile) {  // a record made from a killfile has no program
    row("runs", record.program.empty() ? "dtool-trainer with the experiment " + record.what
                                       : ssh::quote_all(record.program));
    row("code", describe_code(record.code));
  }
  for (const auto& [field, value, usual] : killfiles::tell_unusual(record)) row(field.shown, value);
  row("edits", describe_edits(record.code));
  row("tree", record.code.fingerprint);
  if (!record.machines.empty()) row("ran in", record.machines.front().tree);
  for (const auto& [name, value] : record.environment.items())
    row(name, value.is_string() ? value.get<std::string>() : value.dump());
  row("exports", fmt::format("{}", fmt::join(record.variables, " ")));
  row("dtool", record.dtool_version);
  row("python", describe_python(record.packages));
  for (const auto& [name, value] : record.simulator.items())
    if (value.is_string()) row("simulator", fmt::format("{} {}", name, value.get<std::string>()));
  for (const RecordedMachine& each : record.machines)
    row(fmt::format("machine {}", each.id), describe_machine(each));
  if (!record.machines.empty()) row("outputs", record.machines.front().output_folder);
  if (record.end) {
    row("ended",
        fmt::format(
            "{}: {}{}", local_time(record.end->at), record.end->state,
            record.end->attempts > 1 ? fmt::format(", attempt {}", record.end->attempts) : ""));
    row("cause", record.end->cause);
    row("metrics", describe_metrics(record.end->metrics));
    row("validation", describe_metrics(record.end->validation));
  } else {
    const char* const known = record.is_state_known ? "not yet: " : "not known: ";
    row("ended",
        record.state_now.empty() ? "not known: it is forgotten here" : known + record.state_now);
  }
  if (record.forgotten)
    row("forgotten", local_time(record.forgotten->at) +
                         (record.forgotten->left_on.empty()
                              ? ""
                              : ": something may be left on " + record.forgotten->left_on));
  if (record.experiment.empty()) return;
  console.say("\n" + console.styled(Style::bold, "experiment"));
  console.write(record.experiment.ends_with('\n') ? record.experiment : record.experiment + "\n");
}

class ShowAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option("RUN", runs_, "run ids or parts of them; last, last-1 (the newest run)");
    command.add_flag("--patch", patch_, "print only the edits since the commit, for git apply");
    add_connect_options(command, hosts_);
  }

  int run(Invocation& invocation) override {
    Console& console = invocation.console;
    if (patch_ && console.json())
      throw UsageError("--patch prints the edits alone, and --json has them too",
                       "leave one of them out");
    if (patch_ && runs_.size() > 1) throw UsageError("--patch prints one run's edits", "name one");
    std::vector<RunRecord> records;
    for (const std::string& each : runs_.empty() ? std::vector<std::string>{""} : runs_) {
      records.push_back(explained_run(console, each, hosts_, invocation.settings));
      if (records.back().is_of_killfile)
        console.note(fmt::format(
            "{} has no record here or on its first host: this is what its killfile tells",
            records.back().run_id));
    }
    if (console.json()) {
      nlohmann::json all = nlohmann::json::array();
      for (const RunRecord& each : records) all.push_back(to_json(each));
      console.document(all.size() == 1 ? all[0] : nlohmann::json{{"runs", all}});
      return kAllWell;
    }
    for (const RunRecord& each : records) {
      if (&each != &records.front()) console.say("");
      tell_of(console, each);
    }
    return kAllWell;
  }

 private:
  void tell_of(Console& console, const RunRecord& record) const {
    if (patch_) {
      if (record.code.diff.empty())
        throw UsageError(
            fmt::format("{} has no recorded edits{}", record.run_id,
                        record.code.diff_left_out.empty() ? "" : ": " + record.code.diff_left_out));
      console.pass_on(To::out, record.code.diff);
    } else {
      tell(console, record);
    }
  }

  HostOptions hosts_;
  std::vector<std::string> runs_;
  bool patch_ = false;
};

}  // namespace

std::unique_ptr<Action> make_show() {
  return std::make_unique<ShowAction>();
}

}  // namespace dtool::cli
