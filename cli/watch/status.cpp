// SPDX-License-Identifier: MIT
// `dtool status`: a row for each machine of a recorded run, and the cause if the run failed.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/host_options.h"
#include "cli/options.h"
#include "cli/record/recorded.h"
#include "cli/watch/record_end.h"
#include "cli/watch/run_status.h"
#include "cli/watch/status_answer.h"
#include "cli/watch/status_table.h"
#include "cli/watch/watch.h"

namespace dtool::cli {
namespace {

class StatusAction : public Action {
 public:
  void add_options(Options& command) override;
  int run(Invocation& invocation) override;

 private:
  void show(Console& console, const killfiles::Killfile& killfile,
            const std::vector<MachineStatus>& machines) const;
  int look_at(Invocation& invocation, const std::string& name);

  HostOptions hosts_;
  std::vector<std::string> runs_;
  nlohmann::json documents_ = nlohmann::json::array();
  bool watch_ = false;
  bool each_ = false;
  double interval_ = 0;  ///< seconds; 0: not given
};

void StatusAction::add_options(Options& command) {
  command.add_option("RUN", runs_, "run ids or parts of them; last, last-1 (the newest run)");
  command.add_flag("--watch", watch_, "repeat until the run ends; on a terminal in place");
  command.add_option("--interval", interval_, "seconds between two rounds of --watch (2)")
      .check(must_be_seconds)
      .check(must_be_from(0.1, 3600.0));
  command.add_flag("--each", each_, "a row for each machine, even if there are many");
  add_connect_options(command, hosts_);
}

void StatusAction::show(Console& console, const killfiles::Killfile& killfile,
                        const std::vector<MachineStatus>& machines) const {
  for (const std::string& line : headlines(console, killfile, machines, 0)) console.say(line);
  const std::size_t columns =
      console.is_terminal(To::out) ? terminal_size(STDOUT_FILENO).columns : 0;
  const Room room{columns, each_ ? 0 : kReadableRows};
  for (const std::string& line : table(console, machines, room)) console.say(line);
}

nlohmann::json document_of(const killfiles::Killfile& killfile,
                           const std::vector<MachineStatus>& machines) {
  nlohmann::json document = to_json(killfile);
  document.update({{"state", std::string(state_of_run(machines))},
                   {"exit_code", exit_code_of(machines)},
                   {"attempt", attempt_of(machines)},
                   {"coordinator", killfile.coordinator},
                   {"machines", nlohmann::json::array()}});
  for (const MachineStatus& each : machines) document["machines"].push_back(to_json(each));
  if (const auto cause = cause_of(machines)) {
    document["cause"] = cause->text;
    document["last_lines"] = cause->lines;
  }
  if (const auto failure = earlier_failure_of(machines))
    document["earlier_failure"] = {{"attempt", failure->attempt}, {"cause", failure->text}};
  if (const auto progress = progress_of(machines)) document["progress"] = to_json(*progress);
  return document;
}

int StatusAction::run(Invocation& invocation) {
  Console& console = invocation.console;
  if (interval_ > 0 && !watch_)
    throw UsageError("--interval is the pause of --watch", "give --watch as well");
  if (watch_ && console.json())
    throw UsageError("--watch with --json would be many documents",
                     "call dtool status --json again and again");
  if (watch_ && each_)
    throw UsageError("--each is for one look, and --watch shows what fits the screen",
                     "leave one of them out");
  if (watch_ && runs_.size() > 1) throw UsageError("--watch shows one run", "name one");
  std::vector<std::string> names = runs_;
  if (names.empty()) names.emplace_back();
  if (names.size() > 1)
    for (const std::string& each : names) recorded_run(each);  // a mistake is told before the rest
  int exit_code = kAllWell;
  for (std::size_t i = 0; i < names.size() && exit_code != kInterrupted; ++i)
    exit_code = std::max(exit_code, look_at(invocation, names[i]));
  if (console.json() && exit_code != kInterrupted)
    console.document(names.size() == 1 ? documents_[0] : nlohmann::json{{"runs", documents_}});
  return exit_code;
}

int StatusAction::look_at(Invocation& invocation, const std::string& name) {
  Console& console = invocation.console;
  const killfiles::Killfile killfile = recorded_run(name);
  if (name.empty()) console.note(fmt::format("the newest run is {}", killfile.run_id));
  const Targets targets = recorded_targets(killfile, hosts_, invocation.settings.users());
  const auto remote = invocation.reach(targets.hosts, targets.connect);
  if (watch_) {
    constexpr double kDefaultInterval = 2;
    const double seconds = interval_ > 0 ? interval_ : kDefaultInterval;
    return watch(console, *remote, killfile, from_seconds(seconds));
  }
  std::size_t answered = 0;
  const auto count = [&](std::size_t, const ssh::HostResult&, const MachineStatus&) {
    console.progress(
        fmt::format("answered: {} of {} machines", ++answered, killfile.machines.size()));
  };
  constexpr std::chrono::seconds kLongestAnswer{20};
  const auto machines =
      ask_machines(*remote, killfile, all_machines(killfile), count, kLongestAnswer);
  console.progress("");
  if (remote->interrupted()) return kInterrupted;
  note_end(console, killfile.run_id, machines);
  if (console.json()) {
    documents_.push_back(document_of(killfile, machines));
  } else {
    show(console, killfile, machines);
  }
  return exit_code_of(machines);
}

}  // namespace

std::unique_ptr<Action> make_status() {
  return std::make_unique<StatusAction>();
}

}  // namespace dtool::cli
