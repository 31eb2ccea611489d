// SPDX-License-Identifier: MIT
// `dtool ssh`: a shell, or a program with a terminal, beside a run on one of its machines, or on a
// host.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <optional>
#include <utility>

#include "cli/action.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/logs/attach.h"
#include "cli/options.h"
#include "cli/record/record.h"
#include "cli/record/recorded.h"
#include "cli/visit/exec.h"
#include "cli/watch/record_end.h"
#include "cli/watch/status_answer.h"
#include "ssh/fanout/terminal_link.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

/// A run's machine.
struct Visited {
  killfiles::Killfile run;
  std::size_t place = 0;

  const killfiles::Machine& machine() const { return run.machines[place]; }
  std::string name() const { return fmt::format("machine{} of {}", machine().id, run.run_id); }
};

/// Of runs that ended, as far as it is known here, no host is asked.
bool may_run(const killfiles::Listed& listed) {
  if (!listed.killfile || !listed.killfile->ended.empty()) return false;
  try {
    const auto record = find_record(listed.killfile->run_id);
    if (record && is_complete(*record)) return false;
    run_to_visit(listed.killfile->run_id);
    return true;
  } catch (const std::exception&) {  // no run to visit
    return false;
  }
}

class SshAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option("RUN|HOST", target_,
                       "a run's id or its beginning, last, last-1, or a host (the newest run that "
                       "runs)");
    command.add_option("-m,--machine I", machine_, "the run's machine with this id or host (0)");
    add_connect_options(command, hosts_);
    command.footer(
        "dtool ssh last is a shell in the folder, environment and container of the newest run, "
        "with "
        "its variables; dtool ssh gpu01 is one on that host, and dtool ssh last -- top shows a "
        "program there. Ctrl-C does not reach the run.");
  }

  int run(Invocation& invocation) override {
    require_terminal(invocation.console, "dtool ssh", "dtool exec RUN -- PROGRAM needs none");
    if (target_.empty()) return visit_newest(invocation);
    const std::optional<Visited> visited = find_run();
    if (!visited) return visit_host(invocation);
    ssh::TerminalLink link = link_to(*visited, invocation);
    const ssh::HostResult result = check_visit(
        visited->run, visited->place, link.ask(visit_request(visited->run, visited->place)));
    if (result.ok()) return visit(invocation, *visited, link);
    report_failures(invocation.console, {result}, "looking for " + visited->name());
    return link.interrupted() ? kInterrupted : kSomeFailed;
  }

 private:
  std::optional<Visited> find_run() const {
    if (!run_unless_host(target_)) return std::nullopt;
    return choose(run_to_visit(target_));
  }

  Visited choose(killfiles::Killfile run) const {
    const std::size_t place = machine_.empty() ? 0 : find_machine(run, machine_);
    return {std::move(run), place};
  }

  ssh::TerminalLink link_to(const Visited& visited, Invocation& invocation) const {
    const Targets targets = recorded_targets(visited.run, hosts_, invocation.settings.users());
    return {targets.hosts[visited.place], targets.connect};
  }

  int visit(Invocation& invocation, const Visited& visited, ssh::TerminalLink& link) const {
    Console& console = invocation.console;
    console.note(fmt::format("{} on {}", visited.name(), visited.machine().host));
    return show(console, link, visit_line(visited.run, visited.place, invocation.program),
                visited.name(), invocation.program);
  }

  int visit_newest(Invocation& invocation) const {
    for (const killfiles::Listed& each : killfiles::list(killfile_folder())) {
      if (!may_run(each)) continue;
      const Visited visited = choose(*each.killfile);
      ssh::TerminalLink link = link_to(visited, invocation);
      const ssh::HostResult result = link.ask(visit_request(visited.run, visited.place));
      if (link.interrupted()) return kInterrupted;
      const MachineStatus status =
          read_statuses({{visited.run.run_id, visited.machine()}}, result).front();
      if (status.state == MachineState::running) return visit(invocation, visited, link);
      invocation.console.note(
          fmt::format("{} is passed over: it is {}", visited.name(), to_string(status.state)));
    }
    throw UsageError("no recorded run runs", "dtool ssh RUN goes to one that has ended, too");
  }

  int visit_host(Invocation& invocation) const {
    if (!machine_.empty())
      throw UsageError(fmt::format("--machine wants a run, and {} is none", target_),
                       "dtool list shows the runs");
    HostOptions options = hosts_;
    options.runs_on = target_;
    const Targets targets = choose_targets(options, invocation.settings.all()).value();
    if (targets.hosts.size() != 1)
      throw UsageError(
          fmt::format("{} is {} hosts, and a terminal is on one", target_, targets.hosts.size()),
          "dtool command runs on several");
    const std::vector<std::string>& program = invocation.program;
    std::string line = "exec $SHELL -l";  // for any login shell
    if (!program.empty()) line = program.size() == 1 ? program.front() : ssh::quote_all(program);
    ssh::TerminalLink link(targets.hosts.front(), targets.connect);
    return show(invocation.console, link, line, target_, program);
  }

  int show(Console& console, ssh::TerminalLink& link, const std::string& line,
           const std::string& name, const std::vector<std::string>& program) const {
    const ssh::HostResult shown = show_in_terminal(console, link, line, {});
    if (shown.failure != ssh::Failure::none) {
      report_failures(console, {shown}, "the terminal on " + name);
      return link.interrupted() ? kInterrupted : kSomeFailed;
    }
    if (program.empty() || shown.exit_code == 0)
      return kAllWell;  // a shell's is its last command's
    console.fail(fmt::format("{} on {}: {}", fmt::join(program, " "), name, describe(shown)));
    return kSomeFailed;
  }

  HostOptions hosts_;
  std::string target_;
  std::string machine_;
};

}  // namespace

std::unique_ptr<Action> make_ssh() {
  return std::make_unique<SshAction>();
}

}  // namespace dtool::cli
