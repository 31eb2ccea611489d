// `dtool run`: looks at the hosts, sends the code tree, records the killfile, starts one screen
// session a machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "cli/action.h"
#include "cli/code_tree.h"
#include "cli/experiment.h"
#include "cli/failures.h"
#include "cli/host_options.h"
#include "cli/jobs.h"
#include "cli/listener.h"
#include "cli/run_check.h"
#include "cli/run_flags.h"
#include "cli/run_plan.h"
#include "cli/run_report.h"
#include "cli/run_start.h"
#include "ssh/fleet.h"

namespace dtool::cli {
namespace {

class RunAction : public Action {
 public:
  void add_options(CLI::App& app) override { add_run_flags(app, flags_); }
  int run(Invocation& invocation) override;

 private:
  void make_plan(const Invocation& invocation, const Targets& targets);
  bool needs_code() const;
  std::string code_folder_on(const ssh::Host& host) const;
  bool wants_sync() const;
  std::vector<std::string> code_folders() const;
  bool complete_plan(Console& console, const Targets& targets, const std::vector<Checked>& checked);
  void set_processes(const Targets& targets, const std::vector<Checked>& checked);
  bool check(RunReport& report, Console& console, ssh::Remote& remote, const Targets& targets);

  RunFlags flags_;
  std::optional<std::uint16_t> given_port_;
  RunPlan plan_;
  std::string what_;  ///< the experiment's or the program's name
  bool experiment_is_shipped_ = false;
};

/// The bundled trainer with an experiment that came with dtool needs nothing of the current folder.
bool RunAction::needs_code() const {
  return !plan_.program.empty() || !experiment_is_shipped_;
}

std::string RunAction::code_folder_on(const ssh::Host& host) const {
  const bool anywhere = !needs_code() && !host.is_local && flags_.code_path.empty();
  return anywhere ? "~/dtool_runs" : code_folder(host, flags_.code_path);
}

bool RunAction::wants_sync() const {
  return !flags_.no_sync && needs_code();
}

void RunAction::make_plan(const Invocation& invocation, const Targets& targets) {
  const int machines = static_cast<int>(targets.hosts.size());
  plan_.program = invocation.program;
  if (!flags_.experiment.empty()) {
    const Experiment experiment =
        read_experiment(flags_.experiment, flags_.config_kwargs, machines);
    plan_.experiment_toml = experiment.toml;
    experiment_is_shipped_ = experiment.is_shipped;
    what_ = experiment.name;
  } else if (plan_.program.empty()) {
    throw UsageError("nothing to run was named",
                     "dtool run digits trains the experiment that comes with dtool; dtool run -- "
                     "PROGRAM runs any program");
  } else {
    check_config_kwargs(flags_.config_kwargs, machines);
    what_ = std::filesystem::path(plan_.program.front()).filename();
  }
  if (flags_.nproc_per_node != "auto") parse_processes(flags_.nproc_per_node);
  plan_.run_id = make_run_id(flags_.extra_tag.empty() ? what_ : what_ + "_" + flags_.extra_tag);
  std::random_device random;
  for (int i = 0; i < 4; ++i) plan_.token += fmt::format("{:08x}", random());
  plan_.seed = flags_.seed.value_or(random() & 0x7fffffffU);  // what every library takes as a seed
  plan_.on_failure = flags_.on_failure == "leave" ? OnFailure::leave : OnFailure::stop;
  plan_.max_restarts = flags_.max_restarts.value_or(0);
  if (plan_.on_failure == OnFailure::leave && plan_.max_restarts > 0)
    throw UsageError("--max_restarts starts again what --on_failure leave does not stop",
                     "leave --on_failure away");
  plan_.activate = flags_.env_activate_path;
  plan_.output_dir = flags_.output_dir;
  plan_.variables.assign(invocation.settings.environment.begin(),
                         invocation.settings.environment.end());
  for (const std::string& text : flags_.exports) plan_.variables.push_back(parse_export(text));
  if (flags_.listener != "auto") {
    const ListenerAddress listener = parse_listener(flags_.listener, targets);
    plan_.listener = listener.address;
    given_port_ = listener.port;
  }
  for (int id = 0; id < machines; ++id) {
    const ssh::Host& host = targets.hosts[static_cast<std::size_t>(id)];
    plan_.machines.push_back({id, host, code_folder_on(host), 1, 0, ""});
  }
}

void RunAction::set_processes(const Targets& targets, const std::vector<Checked>& checked) {
  for (std::size_t i = 0; i < plan_.machines.size(); ++i) {
    MachinePlan& machine = plan_.machines[i];
    if (flags_.nproc_per_node != "auto") {
      machine.processes = parse_processes(flags_.nproc_per_node);
    } else if (targets.slots[i]) {
      machine.processes = *targets.slots[i];
    } else {
      machine.processes = std::max(1, checked[i].gpus);
    }
    machine.trainer = plan_.program.empty() ? checked[i].trainer : "";
  }
  number_ranks(plan_);
}

/// What only the hosts could tell. False where they do not fit together.
bool RunAction::complete_plan(Console& console, const Targets& targets,
                              const std::vector<Checked>& checked) {
  set_processes(targets, checked);
  if (plan_.listener.empty())
    plan_.listener = plan_.machines.size() == 1 ? "127.0.0.1" : checked[0].address;
  plan_.port = given_port_.value_or(checked[0].port);
  if (plan_.on_failure == OnFailure::stop && plan_.machines.size() > 1)
    plan_.coordinator_port = checked[0].coordinator_port;
  if (!plan_.program.empty()) return true;
  const int processes = plan_.machines.front().processes;
  for (const MachinePlan& machine : plan_.machines) {
    if (machine.processes == processes) continue;
    console.fail(
        fmt::format(
            "{} has {} GPUs or slots and {} has {}; the bundled trainer wants as many on each",
            ssh::to_string(machine.host), machine.processes,
            ssh::to_string(plan_.machines.front().host), processes),
        "--nproc_per_node sets the number");
    return false;
  }
  return true;
}

std::vector<std::string> RunAction::code_folders() const {
  std::vector<std::string> folders;
  for (const MachinePlan& machine : plan_.machines) folders.push_back(machine.code_folder);
  return folders;
}

bool RunAction::check(RunReport& report, Console& console, ssh::Remote& remote,
                      const Targets& targets) {
  Needs needs;
  needs.run_id = plan_.run_id;
  needs.code_folders = code_folders();
  needs.code_must_exist = flags_.no_sync && !plan_.program.empty();
  needs.activate = plan_.activate;
  needs.trainer = plan_.program.empty();
  if (needs.trainer) needs.experiment_toml = plan_.experiment_toml;
  needs.rsync = wants_sync();
  needs.port = given_port_.value_or(0);
  const std::vector<Checked> checked = check_hosts(console, remote, needs);
  std::vector<ssh::HostResult> results;
  std::vector<ssh::Host> at_risk;
  for (const Checked& each : checked) {
    results.push_back(each.result);
    if (each.logout_kills) at_risk.push_back(each.result.host);
  }
  if (!at_risk.empty()) {
    console.note(fmt::format(
        "{}: the system ends what you leave running at logout; to keep it: loginctl enable-linger",
        fold_hosts(at_risk)));
  }
  if (!report.all_well(results, "looking at the hosts")) return false;
  if (!checked.front().experiment_fault.empty()) {
    discard_run_folders(remote, plan_.run_id);
    throw UsageError(fmt::format("experiment {}: {}", what_, checked.front().experiment_fault));
  }
  return complete_plan(console, targets, checked);
}

int RunAction::run(Invocation& invocation) {
  Console& console = invocation.console;
  apply_settings(invocation.settings, flags_);
  Targets targets;
  if (const auto chosen = choose_targets(flags_.hosts, invocation.settings)) {
    targets = *chosen;
  } else {
    targets.hosts = {ssh::parse_host("local")};
    targets.slots.resize(1);
  }
  make_plan(invocation, targets);
  if (flags_.dry_run) {
    show_plan(console, plan_, {what_, flags_.listener, flags_.nproc_per_node, wants_sync()});
    return kAllWell;
  }
  std::optional<tree_sync::Tree> tree;
  if (wants_sync()) tree = read_code_tree(flags_.excludes, flags_.output_dir);

  const auto remote = ssh::make_fleet(targets.hosts, targets.connect);
  const auto send = [&] { return send_code_tree(console, *remote, *tree, code_folders()); };
  RunReport report(console, plan_.run_id);
  const bool is_ready = check(report, console, *remote, targets) &&
                        (!tree || report.all_well(send(), "sending the code"));
  if (!is_ready || remote->interrupted()) {
    discard_run_folders(*remote, plan_.run_id);
    if (remote->interrupted()) return kInterrupted;
    console.note("nothing was started");
    return report.end(nlohmann::json::object(), kNotDone);
  }
  std::optional<killfiles::Killfile> killfile;
  try {
    killfile = record_run(plan_, what_, invocation.command_line, targets.connect);
  } catch (const std::exception&) {
    discard_run_folders(*remote, plan_.run_id);
    console.note("nothing was started, since it could not be recorded");
    throw;
  }
  return start_run(console, *remote, plan_, *killfile, flags_.follow ? Follow::yes : Follow::no,
                   report);
}

}  // namespace

std::unique_ptr<Action> make_run() {
  return std::make_unique<RunAction>();
}

}  // namespace dtool::cli
