// SPDX-License-Identifier: MIT
// `dtool logs`: the logs of a recorded run's machines as one text; each line begins with its
// machine.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

#include "cli/action.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/logs/follow.h"
#include "cli/logs/log_output.h"
#include "cli/options.h"
#include "cli/record/recorded.h"
#include "cli/watch/run_status.h"
#include "cli/watch/status_answer.h"
#include "ssh/host/answers/log_filter.h"

namespace dtool::cli {
namespace {

/// Who failed first, in the attempt that failed last.
struct FirstFailure {
  int attempt = 0;          ///< the attempt's number, counted from 0
  bool is_earlier = false;  ///< another attempt followed
  /// The size of the machine's log at the end of that attempt.
  std::optional<std::uint64_t> log_bytes;
  int machine = 0;
  std::optional<int> rank;
  std::string text;
};

std::optional<FirstFailure> first_failure_of(const std::vector<MachineStatus>& machines) {
  if (const auto cause = cause_of(machines))
    return FirstFailure{attempt_of(machines), false, {}, cause->machine, cause->rank, cause->text};
  const auto earlier = earlier_failure_of(machines);
  if (!earlier) return std::nullopt;
  return FirstFailure{earlier->attempt, true,          earlier->log_bytes,
                      earlier->machine, earlier->rank, earlier->text};
}

std::string must_be_pattern(const std::string& text) {
  try {
    host::Pattern pattern(text);
    return "";
  } catch (const std::runtime_error& error) {
    return fmt::format("'{}' is no extended regular expression: {}", text, error.what());
  }
}

class LogsAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option("RUN", run_, "a run's id or a part of it; last, last-1 (the newest run)");
    const Option follow =
        command.add_flag("-f,--follow", follow_, "follow the logs until the run has ended");
    const Option machine = command
                               .add_option("-m,--machine I", machines_,
                                           "only the machine with this id or host; repeatable")
                               .take_all();
    const Option rank = command
                            .add_whole_number("--rank R[,R...]", selection_.ranks,
                                              "only the lines of these ranks: 3,7")
                            .delimiter(',');
    const Option since = command
                             .add_option("--since TIME", since_,
                                         "only lines since then: 30s, 10m, 2h, 3d, or a time")
                             .check(must_be_since);
    const Option grep =
        command
            .add_option("--grep PATTERN", selection_.pattern,
                        "only lines that match this extended regular expression; the hosts look")
            .check(must_be_pattern);
    command.add_whole_number("-n,--tail N", selection_.tail,
                             "the last N lines of each log, instead of all");
    const Option fold =
        command.add_flag("--fold", fold_, "show a line that several machines print only once");
    const Option first =
        command.add_flag("--first_failure", first_failure_,
                         "the rank and machine that failed first, and its last lines");
    for (const Option& other : {follow, machine, rank, since, grep, fold}) first.excludes(other);
    add_connect_options(command, hosts_);
  }

  int run(Invocation& invocation) override {
    Console& console = invocation.console;
    killfiles::Killfile run = choose();
    if (!since_.empty()) selection_.since = parse_since(since_, std::time(nullptr));
    if (run_.empty()) console.note(fmt::format("the newest run is {}", run.run_id));
    Targets targets = recorded_targets(run, hosts_, invocation.settings.users());
    std::optional<FirstFailure> first_failure;
    if (first_failure_) {
      const auto all = invocation.reach(targets.hosts, targets.connect);
      first_failure = find_first_failure(console, run, *all);
      if (all->interrupted()) return kInterrupted;
      if (!first_failure) {
        console.note(fmt::format("no failure of {} is known", run.run_id));
        if (console.json())
          console.document({{"run_id", run.run_id},
                            {"exit_code", kAllWell},
                            {"machines", nlohmann::json::array()}});
        return kAllWell;
      }
      targets = recorded_targets(run, hosts_, invocation.settings.users());
    }
    const auto remote = invocation.reach(targets.hosts, targets.connect);

    const Fold fold = fold_ ? Fold::yes : Fold::no;
    const auto make_output = [&]() -> std::unique_ptr<LogOutput> {
      if (follow_) return std::make_unique<FollowedLogs>(console, run, fold, selection_);
      return std::make_unique<LogOutput>(console, run, fold, selection_);
    };
    std::unique_ptr<LogOutput> shown = make_output();
    std::vector<ssh::HostResult> results = shown->read(*remote);
    if (first_failure && first_failure->rank && !remote->interrupted() &&
        std::ranges::count(shown->ranks(0), *first_failure->rank) == 0) {
      // Nobody knows whose its lines are, as with torchrun: the last lines of the machine.
      selection_.ranks.clear();
      shown = make_output();
      results = shown->read(*remote);
    }
    LogOutput& output = *shown;
    output.tell_strangers(results);
    int exit_code = exit_code_of(results, *remote);
    if (exit_code != kInterrupted)
      report_failures(console, results,
                      follow_ ? run.run_id : fmt::format("reading the logs of {}", run.run_id));
    if (exit_code != kInterrupted && !first_failure && !output.cause().empty() &&
        !output.is_cause_shown()) {
      const std::string cause = fmt::format("the cause: {}", output.cause());
      if (follow_) {
        console.fail(cause);
      } else {
        console.note(cause);
      }
    }
    const bool selects_all = selection_.ranks.empty() && selection_.pattern.empty() &&
                             !selection_.since && selection_.tail != 0;
    if (!console.json() && exit_code == kAllWell && first_failure && !output.has_shown_lines())
      console.note("it has written nothing");
    if (exit_code == kAllWell && !first_failure_)
      exit_code = tell_missing_ranks(console, run, output);
    if (!console.json() && exit_code == kAllWell && !output.has_shown_lines() && selects_all)
      console.note(machines_.empty() ? "the logs are empty" : "the log is empty");
    if (console.json()) {
      nlohmann::json machines = nlohmann::json::array();
      for (std::size_t i = 0; i < results.size(); ++i) {
        nlohmann::json machine = to_json(results[i]);
        machine["id"] = run.machines[i].id;
        machine["log"] = output.texts().mark(i);
        machine["ranks"] = output.ranks(i);
        machines.push_back(std::move(machine));
      }
      nlohmann::json document = {
          {"run_id", run.run_id}, {"exit_code", exit_code}, {"machines", machines}};
      if (first_failure) {
        document["first_failure"] = {{"machine", first_failure->machine},
                                     {"attempt", first_failure->attempt},
                                     {"cause", first_failure->text}};
        if (first_failure->rank) document["first_failure"]["rank"] = *first_failure->rank;
      }
      console.document(document, output.texts());
    }
    return exit_code;
  }

 private:
  /// The run with the machines that were asked for alone, in the order of their ids.
  killfiles::Killfile choose() const {
    killfiles::Killfile run = recorded_run(run_);
    std::vector<killfiles::Machine> chosen;
    for (const std::size_t i : choose_machines(run, machines_)) chosen.push_back(run.machines[i]);
    run.machines = std::move(chosen);
    return run;
  }

  /// Leaves the machine alone in `run` that failed first, and selects its rank's last lines.
  std::optional<FirstFailure> find_first_failure(Console& console, killfiles::Killfile& run,
                                                 ssh::Remote& remote) {
    constexpr std::chrono::seconds kPatience{30};
    constexpr std::uint64_t kLines = 20;
    const auto on_status = [](std::size_t, const ssh::HostResult&, const MachineStatus&) {};
    const std::vector<MachineStatus> machines =
        ask_machines(remote, run, all_machines(run), on_status, kPatience, ssh::Follows::more);
    if (remote.interrupted()) return std::nullopt;
    const auto failure = first_failure_of(machines);
    if (!failure) return std::nullopt;
    std::erase_if(run.machines,
                  [&](const killfiles::Machine& each) { return each.id != failure->machine; });
    if (failure->rank) selection_.ranks = {*failure->rank};
    if (!selection_.tail) selection_.tail = kLines;
    // The attempts that followed have written into the same log.
    selection_.until = failure->log_bytes;
    const std::string who =
        failure->rank ? fmt::format("rank {} on machine{}", *failure->rank, failure->machine)
                      : fmt::format("machine{}", failure->machine);
    const int attempt = attempt_of(machines);
    const std::string when =
        attempt > 0 ? fmt::format(" in attempt {}", failure->attempt + 1) : std::string();
    if (!console.json())
      console.say(fmt::format("{} failed first{}: {}", who, when, failure->text));
    if (failure->is_earlier)
      console.note(fmt::format("{} has begun attempt {} since then", run.run_id, attempt + 1));
    return failure;
  }

  /// The ranks that no machine has, unless a machine did not say which it has.
  int tell_missing_ranks(Console& console, const killfiles::Killfile& run,
                         const LogOutput& output) const {
    std::set<std::int64_t> known;
    for (std::size_t i = 0; i < run.machines.size(); ++i)
      known.insert(output.ranks(i).begin(), output.ranks(i).end());
    for (const int rank : selection_.ranks) {
      if (known.contains(rank)) continue;
      const std::string hint =
          known.empty() ? "its ranks are not known: none has started yet, or torchrun starts them"
                        : fmt::format("these machines have the ranks {}", fmt::join(known, ", "));
      console.fail(fmt::format("{} has no rank {}", run.run_id, rank), hint);
      return kNotDone;
    }
    return kAllWell;
  }

  HostOptions hosts_;
  std::string run_;
  std::vector<std::string> machines_;
  LogSelection selection_;
  std::string since_;
  bool first_failure_ = false;
  bool fold_ = false;
  bool follow_ = false;
};

}  // namespace

std::unique_ptr<Action> make_logs() {
  return std::make_unique<LogsAction>();
}

}  // namespace dtool::cli
