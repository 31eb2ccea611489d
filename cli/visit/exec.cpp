// SPDX-License-Identifier: MIT
// `dtool exec`: runs a command beside a run, on one or all of its machines, as `dtool command` does
// on hosts.
#include "cli/visit/exec.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/engines/engine.h"
#include "cli/options.h"
#include "cli/record/recorded.h"
#include "cli/watch/status_answer.h"
#include "ssh/fanout/terminal_link.h"
#include "ssh/machine/run_to_end.h"
#include "ssh/quote.h"
#include "ssh/wire/run.h"

namespace dtool::cli {
namespace {

/// A container may have no bash.
constexpr const char* kLine =
    "command -v bash > /dev/null && exec bash -c \"$1\"; exec sh -c \"$1\"";
/// ~/.bashrc is not read: it may put another Python before the environment's.
constexpr const char* kShell =
    "export PS1=\"$1 $ \"; command -v bash > /dev/null && PS1=\"$1 \\\\w \\\\$ \" && "
    "exec bash --norc; exec sh";

class RunPlace : public CommandPlace {
 public:
  void add_options(Options& command, std::string& line) override;
  Targets targets(Invocation& invocation) override;
  std::vector<std::optional<ssh::HostResult>> make_ready(ssh::Remote& remote) override {
    return find_unready(remote, run_);
  }
  std::string line(std::size_t host, const std::vector<std::string>& words) const override {
    return visit_line(run_, host, words);
  }
  void tell(std::size_t host, nlohmann::json& about) const override {
    about["machine"] = run_.machines[host].id;
  }
  ssh::OnInterrupt on_interrupt() const override { return ssh::OnInterrupt::leave; }

 private:
  HostOptions hosts_;
  std::string id_;
  std::vector<std::string> machines_;
  killfiles::Killfile run_;  ///< it has the chosen machines alone
};

void RunPlace::add_options(Options& command, std::string&) {
  command.add_option("RUN", id_, "a run's id or a part of it; last, last-1").required();
  command
      .add_option("-m,--machine I", machines_,
                  "only on the machine with this id or host; repeatable (all)")
      .take_all();
  add_connect_options(command, hosts_);
  command.footer(
      "dtool exec last -m 0 -- python -c 'import torch; print(torch.__version__)' runs in the "
      "folder, environment and container of the newest run, with its variables. One word after -- "
      "is a command line, several are a program and its words. Ctrl-C ends the command, and not "
      "the run.");
}

Targets RunPlace::targets(Invocation& invocation) {
  try {
    run_ = run_to_visit(id_);
  } catch (const killfiles::NoSuchRun& fault) {
    if (id_.starts_with("last")) throw;
    throw UsageError(
        fmt::format("{}; on hosts: dtool command -w {} -- PROGRAM", fault.what(), ssh::quote(id_)));
  }
  const Targets all = recorded_targets(run_, hosts_, invocation.settings.users());
  Targets chosen{{}, {}, all.connect};
  std::vector<killfiles::Machine> machines;
  for (const std::size_t i : choose_machines(run_, machines_)) {
    machines.push_back(run_.machines[i]);
    chosen.hosts.push_back(all.hosts[i]);
  }
  run_.machines = std::move(machines);
  return chosen;
}

}  // namespace

killfiles::Killfile run_to_visit(const std::string& id) {
  const killfiles::Killfile run = recorded_run(id);
  if (run.kind == killfiles::RunKind::config || run.machines.front().state_folder.empty())
    throw UsageError(
        fmt::format("{} has no environment of its own", run.run_id),
        fmt::format("dtool command --runs_on {} runs on its host", run.machines.front().host));
  const auto engine = find_engine(run.engine);
  if (const std::string way = engine ? engine->way_to_nodes(run.job) : ""; !way.empty())
    throw UsageError(fmt::format("{} runs on nodes that {} chose, and dtool reaches {} alone",
                                 run.run_id, run.engine, run.machines.front().host),
                     "there, " + way);
  return run;
}

ssh::Command visit_request(const killfiles::Killfile& run, std::size_t machine) {
  return status_command({{run.run_id, run.machines[machine]}}, Detail::brief);
}

ssh::HostResult check_visit(const killfiles::Killfile& run, std::size_t machine,
                            ssh::HostResult result) {
  if (!result.ok()) return result;
  if (const auto reply = ssh::reply_in<host::StatusReply>(result))
    result.error = stranger_at(run.machines[machine], reply->host, result);
  if (!result.error.empty()) result.failure = ssh::Failure::unproven;
  return result;
}

std::vector<std::optional<ssh::HostResult>> find_unready(ssh::Remote& remote,
                                                         const killfiles::Killfile& run) {
  std::vector<ssh::Task> tasks;
  for (std::size_t i = 0; i < run.machines.size(); ++i) tasks.push_back({i, visit_request(run, i)});
  ssh::Events nobody;
  ssh::RunOptions options;
  options.timeout = std::chrono::seconds(30);
  options.on_interrupt = ssh::OnInterrupt::leave;
  std::vector<ssh::HostResult> results = remote.run(std::move(tasks), nobody, options);
  std::vector<std::optional<ssh::HostResult>> unready(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    ssh::HostResult checked = check_visit(run, i, std::move(results[i]));
    if (!checked.ok()) unready[i] = std::move(checked);
  }
  return unready;
}

std::string visit_line(const killfiles::Killfile& run, std::size_t machine,
                       std::vector<std::string> words) {
  const killfiles::Machine& visited = run.machines[machine];
  if (words.empty()) {
    words = {"sh", "-c", kShell, "sh", fmt::format("{} machine{}", run.run_id, visited.id)};
  } else if (words.size() == 1) {
    words = {"sh", "-c", kLine, "sh", words.front()};
  }
  return ssh::visit_line(visited.state_folder, words);
}

void open_in_browser(Console& console, const std::string& address) {
  // It may stay as long as the browser, which asks here.
  const auto browser = ssh::run_to_end(
      {"sh", "-c",
       "command -v xdg-open && exec setsid -f xdg-open \"$1\" </dev/null >/dev/null 2>&1", "sh",
       address});
  if (!browser || browser->exit_code != 0)
    console.note(fmt::format("no browser could be started here; open {} in yours", address));
}

std::unique_ptr<Action> make_exec() {
  return make_command_at(std::make_unique<RunPlace>());
}

}  // namespace dtool::cli
