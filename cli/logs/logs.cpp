// SPDX-License-Identifier: MIT
// `dtool logs`: the logs of a recorded run's machines as one text; each line begins with its
// machine.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/action.h"
#include "cli/failures.h"
#include "cli/flag_values.h"
#include "cli/host_options.h"
#include "cli/logs/log_follow.h"
#include "cli/logs/log_output.h"
#include "cli/recorded.h"
#include "cli/scripts.h"
#include "ssh/fleet.h"
#include "ssh/quote.h"
#include "ssh/script.h"

namespace dtool::cli {
namespace {

class LogsAction : public Action {
 public:
  void add_options(Options& command) override;
  int run(Invocation& invocation) override;

 private:
  killfiles::Killfile choose() const;

  HostOptions hosts_;
  std::string run_;
  std::vector<int> machines_;
  std::optional<std::uint64_t> tail_;
  bool fold_ = false;
  bool follow_ = false;
};

void LogsAction::add_options(Options& command) {
  command.add_option("RUN", run_, "a run's id, or the beginning of one (the newest run)");
  command.add_flag("-f,--follow", follow_, "follow the logs until the run has ended");
  command.add_whole_number("--machine", machines_, "only the log of this machine; repeatable")
      .type_name("I")
      .take_all();
  command.add_whole_number("--tail", tail_, "the last N lines of each log, instead of all")
      .type_name("N");
  command.add_flag("--fold", fold_, "show a line that several machines print only once");
  add_connect_options(command, hosts_);
}

/// The run with the machines that were asked for alone, in the order of their ids.
killfiles::Killfile LogsAction::choose() const {
  killfiles::Killfile run = recorded_run(run_);
  const std::vector<killfiles::Machine> all = run.machines;
  for (const int id : machines_) {
    const auto has_id = [id](const killfiles::Machine& machine) { return machine.id == id; };
    if (std::none_of(all.begin(), all.end(), has_id))
      throw UsageError(fmt::format("{} has no machine {}", run.run_id, id),
                       fmt::format("its machines are {} to {}", all.front().id, all.back().id));
  }
  if (!machines_.empty()) {
    std::erase_if(run.machines, [this](const killfiles::Machine& machine) {
      return std::find(machines_.begin(), machines_.end(), machine.id) == machines_.end();
    });
  }
  return run;
}

int LogsAction::run(Invocation& invocation) {
  Console& console = invocation.console;
  const killfiles::Killfile run = choose();
  if (run_.empty()) console.note(fmt::format("the newest run is {}", run.run_id));
  const Targets targets = recorded_targets(run, hosts_, invocation.settings.users());
  const auto remote = ssh::make_fleet(targets.hosts, targets.connect);

  const Fold fold = fold_ ? Fold::yes : Fold::no;
  const std::unique_ptr<LogOutput> shown =
      follow_ ? std::make_unique<FollowedLogs>(console, run, fold, tail_)
              : std::make_unique<LogOutput>(console, run, fold, tail_);
  LogOutput& output = *shown;
  std::vector<ssh::HostResult> results = output.read(*remote);
  output.tell_strangers(results);
  const int exit_code = exit_code_of(results, *remote);
  if (exit_code != kInterrupted)
    report_failures(console, results,
                    follow_ ? run.run_id : fmt::format("reading the logs of {}", run.run_id));
  if (exit_code != kInterrupted && !output.cause().empty() && !output.is_cause_shown()) {
    const std::string cause = fmt::format("the cause: {}", output.cause());
    if (follow_) {
      console.fail(cause);
    } else {
      console.note(cause);
    }
  }
  if (!console.json() && exit_code == kAllWell && !output.has_shown_lines() && tail_ != 0)
    console.note(machines_.empty() ? "the logs are empty" : "the log is empty");
  if (console.json()) {
    nlohmann::json machines = nlohmann::json::array();
    for (std::size_t i = 0; i < results.size(); ++i) {
      nlohmann::json machine = to_json(results[i]);
      machine["id"] = run.machines[i].id;
      machine["log"] = output.text(i);
      machines.push_back(std::move(machine));
    }
    console.document({{"run_id", run.run_id}, {"exit_code", exit_code}, {"machines", machines}});
  }
  return exit_code;
}

}  // namespace

std::unique_ptr<Action> make_logs() {
  return std::make_unique<LogsAction>();
}

}  // namespace dtool::cli
