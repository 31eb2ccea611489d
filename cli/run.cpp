// `dtool run`: looks at the hosts, sends the code tree, records the killfile, starts one screen
// session a machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "cli/action.h"
#include "cli/code_tree.h"
#include "cli/experiment.h"
#include "cli/failures.h"
#include "cli/follow.h"
#include "cli/host_options.h"
#include "cli/jobs.h"
#include "cli/listener.h"
#include "cli/recorded.h"
#include "cli/run_check.h"
#include "cli/run_plan.h"
#include "cli/run_report.h"
#include "ssh/fleet.h"

namespace dtool::cli {
namespace {

/// The flags, as typed.
struct RunFlags {
  HostOptions hosts;
  std::string experiment;
  std::string listener = "auto";
  std::string config_kwargs;
  std::optional<std::uint64_t> seed;
  std::string env_activate_path;
  std::string code_path;
  std::string output_dir;
  std::string extra_tag;
  std::string nproc_per_node;
  std::vector<std::string> exports;
  std::vector<std::string> excludes;
  bool no_sync = false;
  bool follow = false;
  bool dry_run = false;
};

/// A check for CLI11, which takes -1 for the largest number.
std::string must_be_seed(const std::string& text) {
  const bool is_whole = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  return is_whole ? "" : fmt::format("a seed is a whole number from 0, not '{}'", text);
}

class RunAction : public Action {
 public:
  void add_options(CLI::App& app) override;
  int run(Invocation& invocation) override;

 private:
  void apply_settings(const Settings& settings);
  void make_plan(const Invocation& invocation, const Targets& targets);
  bool needs_code() const;
  std::string code_folder_on(const ssh::Host& host) const;
  bool wants_sync() const;
  std::vector<std::string> code_folders() const;
  bool complete_plan(Console& console, const Targets& targets, const std::vector<Checked>& checked);
  void set_processes(const Targets& targets, const std::vector<Checked>& checked);
  bool check(Console& console, ssh::Remote& remote, const Targets& targets);
  killfiles::Killfile record(const Invocation& invocation, const Targets& targets) const;
  int start(Invocation& invocation, ssh::Remote& remote, const killfiles::Killfile& killfile);
  int give_up(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile);
  int follow(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile);
  bool all_well(Console& console, const std::vector<ssh::HostResult>& results,
                std::string_view doing);
  int tell_end(Console& console, nlohmann::json document, int exit_code) const;
  void tell_started(Console& console, const killfiles::Killfile& killfile) const;

  RunFlags flags_;
  std::optional<std::uint16_t> given_port_;
  RunPlan plan_;
  std::string what_;  ///< the experiment's or the program's name
  bool experiment_is_shipped_ = false;
  nlohmann::json failures_ = nlohmann::json::array();  ///< every host's that were told
  std::string cause_;                                  ///< the bundled trainer's, or empty
};

void RunAction::add_options(CLI::App& app) {
  app.add_option("EXPERIMENT", flags_.experiment,
                 "a TOML file, or the name of an experiment that comes with dtool");
  app.footer(
      "`-- PROGRAM ARGS...` runs that program instead of the bundled trainer, once a process, with "
      "MASTER_ADDR,\n"
      "MASTER_PORT, WORLD_SIZE, RANK, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, DTOOL_RUN_ID, "
      "DTOOL_MACHINE_ID,\n"
      "DTOOL_SEED and DTOOL_OUTPUT_DIR set. Without --runs_on it runs on this machine.");
  add_host_options(app, flags_.hosts);
  app.add_option("--distributed_ip_and_port", flags_.listener,
                 "where rank 0 listens: IP:PORT of the first host, or auto (auto)");
  app.add_option("--config_kwargs", flags_.config_kwargs,
                 R"(merged into the experiment: '{"train":{"epochs":3}}')")
      ->type_name("JSON");
  app.add_option("-s,--seed", flags_.seed, "the same on every machine (random, and recorded)")
      ->check(must_be_seed);
  app.add_option("--env_activate_path", flags_.env_activate_path,
                 "a file on the hosts to source first")
      ->type_name("PATH");
  app.add_option("--code_path,--allenact_path", flags_.code_path,
                 "where the current folder goes on the hosts (its place under the home folder, "
                 "else ~/NAME)")
      ->type_name("PATH");
  app.add_option("--output_dir", flags_.output_dir,
                 "on the hosts (experiment_output, in the code folder)")
      ->type_name("PATH");
  app.add_option("--extra_tag", flags_.extra_tag, "stands in the run's id");
  app.add_option("--nproc_per_node", flags_.nproc_per_node,
                 "processes a machine; auto: its GPUs, else 1 (auto)");
  app.add_option("--export", flags_.exports, "VAR or VAR=VALUE for the run's processes; repeatable")
      ->type_name("VAR[=VALUE]")
      ->allow_extra_args(false);
  app.add_option("--exclude", flags_.excludes, "files not to send; repeatable")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_flag("--no_sync", flags_.no_sync, "do not send the current folder");
  app.add_flag("--follow", flags_.follow,
               "print all machines' logs until the run ends, and return its exit code");
  app.add_flag("--dry_run", flags_.dry_run, "say what would run where, and touch nothing");
}

void RunAction::apply_settings(const Settings& settings) {
  const auto use = [](std::string& flag, const std::optional<std::string>& setting,
                      const char* otherwise) {
    if (flag.empty()) flag = setting.value_or(otherwise);
  };
  use(flags_.env_activate_path, settings.env_activate_path, "");
  use(flags_.code_path, settings.code_path, "");
  use(flags_.output_dir, settings.output_dir, "experiment_output");
  use(flags_.nproc_per_node, settings.nproc_per_node, "auto");
  flags_.excludes.insert(flags_.excludes.end(), settings.exclude.begin(), settings.exclude.end());
}

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
  plan_.seed = flags_.seed.value_or(random() & 0x7fffffffU);  // what every library takes as a seed
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

/// Tells the failures among `results`, and remembers them for --json.
bool RunAction::all_well(Console& console, const std::vector<ssh::HostResult>& results,
                         std::string_view doing) {
  for (const ssh::HostResult& result : results) {
    if (!result.ok()) failures_.push_back(to_json(result));
  }
  return report_failures(console, results, doing) == 0;
}

/// The document that --json wants, whatever came of the run.
int RunAction::tell_end(Console& console, nlohmann::json document, int exit_code) const {
  document.update({{"run_id", plan_.run_id}, {"exit_code", exit_code}, {"failures", failures_}});
  if (!cause_.empty()) document["cause"] = cause_;
  if (console.json()) console.document(document);
  return exit_code;
}

bool RunAction::check(Console& console, ssh::Remote& remote, const Targets& targets) {
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
  if (!all_well(console, results, "looking at the hosts")) return false;
  if (!checked.front().experiment_fault.empty()) {
    discard_run_folders(remote, plan_.run_id);
    throw UsageError(fmt::format("experiment {}: {}", what_, checked.front().experiment_fault));
  }
  return complete_plan(console, targets, checked);
}

killfiles::Killfile RunAction::record(const Invocation& invocation, const Targets& targets) const {
  killfiles::Killfile killfile;
  killfile.run_id = plan_.run_id;
  killfile.created = utc_now();
  killfile.launcher = launcher_name();
  killfile.command_line = invocation.command_line;
  killfile.what = what_;
  killfile.seed = plan_.seed;
  killfile.distributed_ip_and_port = listener_of(plan_);
  killfile.nproc_per_node = plan_.machines.front().processes;
  killfile.code_path = plan_.machines.front().code_folder;
  record_connection(targets.connect, killfile);
  for (const MachinePlan& machine : plan_.machines) {
    const ssh::ScreenJob job = make_job(plan_, machine);
    killfile.machines.push_back({machine.id, ssh::to_string(machine.host), job.session,
                                 job.state_folder, job.log, output_folder(plan_, machine)});
  }
  killfiles::write(killfile_folder(), killfile);
  return killfile;
}

/// Some machine did not start: a distributed run cannot go on without it, so the others are ended.
int RunAction::give_up(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile) {
  const KillReport ended = end_run(console, remote, killfile, std::chrono::seconds(5));
  if (ended.none_left) {
    remove_state(remote, killfile);
    std::filesystem::remove(killfiles::path_of(killfile_folder(), killfile.run_id));
    console.note("what had been started was ended again");
    return kSomeFailed;
  }
  all_well(console, ended.results, "ending what had been started");
  console.fail("something may still run", fmt::format("dtool kill {}", killfile.run_id));
  return kSomeFailed;
}

void RunAction::tell_started(Console& console, const killfiles::Killfile& killfile) const {
  std::vector<ssh::Host> hosts;
  for (const MachinePlan& machine : plan_.machines) hosts.push_back(machine.host);
  console.note(fmt::format("{}: started on {}; {} process{}, seed {}, rank 0 listens on {}",
                           console.styled_error(Style::bold, killfile.run_id), fold_hosts(hosts),
                           plan_.world_size, plan_.world_size == 1 ? "" : "es", plan_.seed,
                           killfile.distributed_ip_and_port));
}

int RunAction::follow(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile) {
  const auto [results, cause] = follow_logs(console, remote, killfile);
  cause_ = cause;
  if (remote.interrupted()) {
    console.note(fmt::format("end it with: dtool kill {}", killfile.run_id));
    return kInterrupted;
  }
  if (all_well(console, results, killfile.run_id))
    console.note(fmt::format("{}: ended well on {}",
                             console.styled_error(Style::bold, killfile.run_id),
                             fold_hosts(remote.hosts())));
  console.note(fmt::format("outputs: {} on each\nforget:  dtool kill {} --delete",
                           killfile.machines.front().output_folder, killfile.run_id));
  return exit_code_of(results, remote);
}

int RunAction::start(Invocation& invocation, ssh::Remote& remote,
                     const killfiles::Killfile& killfile) {
  Console& console = invocation.console;
  std::vector<ssh::ScreenJob> jobs;
  std::vector<std::size_t> all;
  for (const MachinePlan& machine : plan_.machines) {
    all.push_back(jobs.size());
    jobs.push_back(make_job(plan_, machine));
  }
  const auto results = start_jobs(console, remote, jobs, all, ssh::OldLog::append);
  if (remote.interrupted()) {
    console.fail("interrupted while the run was being started",
                 fmt::format("dtool kill {} ends what was started", killfile.run_id));
    return kInterrupted;
  }
  if (!all_well(console, results, "starting"))
    return tell_end(console, nlohmann::json::object(), give_up(console, remote, killfile));
  tell_started(console, killfile);
  if (console.json()) {
    const int exit_code = flags_.follow ? follow(console, remote, killfile) : kAllWell;
    return tell_end(console, describe_run(plan_, killfile), exit_code);
  }
  if (flags_.follow) return follow(console, remote, killfile);
  console.note(
      fmt::format("look:    dtool status {0} --watch\n"
                  "logs:    dtool logs {0} -f\n"
                  "end it:  dtool kill {0}",
                  killfile.run_id));
  return kAllWell;
}

int RunAction::run(Invocation& invocation) {
  Console& console = invocation.console;
  apply_settings(invocation.settings);
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
  const bool is_ready =
      check(console, *remote, targets) && (!tree || all_well(console, send(), "sending the code"));
  if (!is_ready || remote->interrupted()) {
    discard_run_folders(*remote, plan_.run_id);
    if (remote->interrupted()) return kInterrupted;
    console.note("nothing was started");
    return tell_end(console, nlohmann::json::object(), kNotDone);
  }
  const killfiles::Killfile killfile = record(invocation, targets);
  return start(invocation, *remote, killfile);
}

}  // namespace

std::unique_ptr<Action> make_run() {
  return std::make_unique<RunAction>();
}

}  // namespace dtool::cli
