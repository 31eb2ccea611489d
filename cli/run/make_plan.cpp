// SPDX-License-Identifier: MIT
// The plan of a run, from its flags.
#include "cli/run/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "cli/console.h"
#include "cli/copy/copy_to_hosts.h"
#include "cli/plan/code_tree.h"
#include "cli/plan/experiment.h"
#include "cli/plan/flags.h"
#include "cli/plan/plan.h"
#include "cli/plan/program_words.h"
#include "cli/ready/packages.h"
#include "cli/record/record.h"
#include "cli/record/recorded.h"
#include "ssh/host/child.h"
#include "ssh/machine/encodings.h"
#include "ssh/quote.h"

namespace dtool::cli {

namespace {

using namespace std::string_literals;

/// What runs: the experiment, the program, or those of the earlier run.
void take_program(PendingRun& run, const Invocation& invocation) {
  const int machines = static_cast<int>(run.plan.machines.size());
  run.plan.program = invocation.program;
  if (run.earlier) {
    const RunRecord& earlier = run.earlier->record();
    if (run.resumes()) run.plan.chain = run.earlier->chain();
    if (run.repeats()) run.plan.rerun_of = earlier.run_id;
    if (run.plan.program.empty()) run.plan.program = earlier.program;
    run.plan.what = earlier.what;
    run.experiment_is_shipped = earlier.code.folder.empty();
    if (earlier.experiment.empty()) {
      check_config_kwargs(run.flags.config_kwargs, machines);
    } else {
      const auto changed = run.resumes() ? resumed_experiment : repeated_experiment;
      run.plan.experiment =
          changed(earlier.what, earlier.experiment, run.flags.config_kwargs, machines).toml;
    }
  } else if (!run.flags.experiment.empty()) {
    if (!run.plan.program.empty() && !is_experiment(run.flags.experiment))
      throw UsageError(fmt::format("there is no experiment {}, and {} is the program",
                                   run.flags.experiment, run.plan.program.front()),
                       "hosts are joined by commas: --runs_on h1,h2; a program's words follow it");
    const ExperimentText experiment =
        read_experiment(run.flags.experiment, run.flags.config_kwargs, machines);
    run.plan.experiment = experiment.toml;
    run.experiment_is_shipped = experiment.is_shipped;
    run.plan.what = experiment.name;
  } else if (run.plan.program.empty()) {
    throw UsageError("nothing to run was named",
                     "dtool run digits trains the experiment that comes with dtool; dtool run -- "
                     "PROGRAM runs any program");
  } else {
    check_config_kwargs(run.flags.config_kwargs, machines);
    run.plan.what = name_of_program(run.plan.program);
  }
}

/// --environment brings a Python environment, and the settings' one does not count then.
void refuse_other_environments(PendingRun& run) {
  if (!run.requirements.empty()) check_requirements(run.package_needs());
  const Environment& environment = run.plan.environment;
  const char* other = !run.flags.environment.activate.empty() ? "--env_activate_path"
                      : environment.container                 ? "a container"
                      : !environment.modules.empty()          ? "--modules"
                                                              : nullptr;
  if (other != nullptr)
    throw UsageError(fmt::format("--environment builds an environment of its own, and {} leads to "
                                 "another",
                                 other),
                     "give one of them");
  run.plan.environment.activate.clear();
  run.plan.environment.requirements = run.flags.environment_file;
}

}  // namespace

void make_plan(PendingRun& run, const Invocation& invocation, const Targets& targets) {
  static_cast<killfiles::Run&>(run.plan) = run.flags.run;
  run.plan.engine = run.engine->name();
  run.engine->place(run.flags, targets, run.plan);
  take_program(run, invocation);
  if (run.flags.nproc_per_node != "auto") parse_processes(run.flags.nproc_per_node);
  const std::string begin =
      run.flags.extra_tag.empty() ? run.plan.what : run.plan.what + "_" + run.flags.extra_tag;
  run.plan.run_id = make_run_id(begin);
  // Hosts know their set-up scripts by this beginning, and `dtool config --force` ends those.
  if (run.plan.run_id.starts_with("config_")) run.plan.run_id = make_run_id("run_" + begin);
  run.plan.token = ssh::random_hex(16);
  // A seed that every library accepts.
  run.plan.seed = run.plan.seed.value_or(std::random_device()() & 0x7fffffffU);
  if (run.plan.on_failure == RunPlan::kLeave && run.plan.max_restarts > 0)
    throw UsageError("--max_restarts starts again what --on_failure leave does not stop",
                     "leave --on_failure away");
  run.plan.environment = make_environment(run.flags.environment, invocation.settings.all());
  if (!run.flags.environment_file.empty()) {
    refuse_other_environments(run);
  } else if (run.flags.system_site_packages || !run.flags.extras.empty() ||
             !run.flags.groups.empty()) {
    throw UsageError("--extra, --group and --system_site_packages are about --environment FILE");
  }
  check_torchrun(run.plan.environment, run.plan.program);
  take_program_flags(run.flags.program, run.plan);
  require_path_of_hosts(run.plan.output_dir);
  require_path_of_hosts(run.flags.code_path);
  if (std::filesystem::path(run.flags.code_path).lexically_normal() == "/")
    throw UsageError(fmt::format("--code_path {}: code does not go among a host's own folders",
                                 run.flags.code_path),
                     "name a folder below it");
  run.plan.variables.assign(invocation.settings.all().environment.begin(),
                            invocation.settings.all().environment.end());
  for (const std::string& file : run.flags.env_files) {
    for (auto& variable : read_env_file(file)) run.plan.variables.push_back(std::move(variable));
  }
  for (const std::string& text : run.flags.exports)
    run.plan.variables.push_back(parse_export(text));
  if (!run.plan.gpus.empty()) {
    Variable gpus = parse_gpus(run.plan.gpus);
    for (const std::string_view name : {std::string_view(gpus.first), kAmdsGpus}) {
      if (find_variable(run.plan.variables, name))
        throw UsageError(
            fmt::format("--gpus sets {}, and --export, --env_file or the settings do too", name),
            "give one of them");
    }
    run.plan.variables.push_back(std::move(gpus));
  }
  if (run.earlier) run.earlier->require_variables(run.plan);
  if (run.flags.listener != "auto") {
    const ListenerAddress listener = parse_listener(run.flags.listener, targets);
    run.plan.address = listener.address;
    run.plan.port = listener.port;
  }
  const bool has_own_tree = run.wants_sync() && run.flags.own_tree;
  for (MachinePlan& machine : run.plan.machines) {
    machine.code_folder = run.code_folder_on(machine.host);
    if (has_own_tree) machine.tree = killfiles::tree_folder(run.plan.run_id);
  }
}

void require_program(const PendingRun& run, const Targets& targets) {
  const Environment& environment = run.plan.environment;
  const bool is_plain = environment.modules.empty() && environment.activate.empty() &&
                        !environment.container && environment.torchrun == Torchrun::no &&
                        run.plan.engine == "ssh" && run.flags.code_path.empty();
  if (run.plan.program.empty() || !is_plain ||
      !std::ranges::all_of(targets.hosts, &ssh::Host::is_local))
    return;
  if (std::ranges::any_of(run.plan.variables,
                          [](const auto& each) { return each.first == "PATH"; }))
    return;
  const std::string& program = run.plan.program.front();
  if (!host::find_program(program).empty()) return;
  const bool is_path = program.find('/') != program.npos;
  std::error_code unseen;
  const bool is_file = std::filesystem::is_regular_file(program, unseen);
  if (is_path && is_file) require_executable(program);
  const std::string meant = meant_program(program);
  throw UsageError(program + ": no such program on this machine",
                   is_file ? "it is in the current folder: ./" + program
                   : !meant.empty()
                       ? meant
                       : "it is looked for " + (is_path ? "from the current folder" : "in PATH"s));
}

namespace {

UsageError gone(const EarlierRun& earlier, const std::string& flag, const std::string& file) {
  return UsageError(fmt::format("{} had {} {}, which is gone from {}", earlier.record().run_id,
                                flag, file, earlier.record().code.folder),
                    fmt::format("{} FILE names another", flag));
}

}  // namespace

std::string PendingRun::code_folder_on(const ssh::Host& host) const {
  const auto recorded = earlier ? earlier->code_folder_on(host) : std::nullopt;
  if (recorded) return *recorded;
  const bool anywhere = !needs_code() && !host.is_local && flags.code_path.empty();
  if (anywhere) return "~/dtool_runs";
  const bool is_elsewhere = repeats() && !earlier->record().code.folder.empty();
  return code_folder(
      host, flags.code_path,
      is_elsewhere ? std::filesystem::path(earlier->record().code.folder) : current_folder());
}

PackageNeeds PendingRun::package_needs() const {
  return {requirements, flags.extras, flags.groups,
          flags.system_site_packages ? OwnPackages::seen : OwnPackages::hidden};
}

void take_up_earlier(PendingRun& run, Options& command, const Invocation& invocation) {
  const bool names_data = !run.flags.data.empty();
  if (run.start == Start::rerun) {
    run.earlier.emplace(run.flags.rerun, run.start);
    run.keeps_code = true;
    run.earlier->give_flags(command);
    run.flags.no_sync = run.earlier->record().code.folder.empty();
    run.flags.own_tree = true;
    if (run.flags.no_sync && !run.earlier->record().program.empty())
      invocation.console.note(
          fmt::format("the code of {} was not sent, and is not known: what the hosts have now runs",
                      run.earlier->record().run_id));
    if (!names_data) leave_out_gone(invocation.console, run.flags.data);
    return;
  }
  if (run.flags.resume.empty()) return;
  if (!run.flags.experiment.empty())
    throw UsageError(fmt::format("--resume runs what {} ran, and {} was named, too",
                                 run.flags.resume, run.flags.experiment),
                     "leave it out; --config_kwargs changes settings of the experiment");
  run.earlier.emplace(run.flags.resume, Start::resumed);
  const RunRecord& earlier = run.earlier->record();
  if (!invocation.program.empty() && earlier.program.empty())
    throw UsageError(fmt::format("{} ran the bundled trainer, and --resume goes on with it, not "
                                 "with {}",
                                 earlier.run_id, invocation.program.front()),
                     "--config_kwargs changes settings of the experiment");
  if (!invocation.program.empty())
    invocation.console.note(fmt::format("goes on from {}, which ran: {}", earlier.run_id,
                                        ssh::quote_all(earlier.program)));
  run.earlier->give_flags(command);
  // Who goes on from a run expects its code; the hosts may have been sent another one since.
  if (run.flags.no_sync && !run.earlier->record().program.empty())
    invocation.console.note(fmt::format(
        "--no_sync: the code that the hosts have now runs, whether or not it is still that of {}",
        run.earlier->record().run_id));
  run.flags.no_sync = run.flags.no_sync || !run.earlier->sends_code();
  if (!names_data) leave_out_gone(invocation.console, run.flags.data);
}

void find_files(PendingRun& run) {
  run.requirements = run.flags.environment_file;
  if (!run.repeats()) return;
  for (std::string& file : run.flags.env_files) {
    const auto found = run.earlier->find_file("--env_file", file, {});
    if (!found) throw gone(*run.earlier, "--env_file", file);
    file = found->string();
  }
  run.requirements =
      run.earlier->find_file("--environment", run.flags.environment_file, {}).value_or("").string();
}

void keep_earlier_code(PendingRun& run, Console& console) {
  const RunRecord& earlier = run.earlier->record();
  const bool has_tree =
      std::ranges::any_of(earlier.machines, [](const auto& each) { return !each.tree.empty(); });
  if (run.flags.resync || run.plan.program.empty() || !run.wants_sync() || !has_tree) return;
  const auto listing = read_listing(earlier.run_id);
  if (!listing) return;
  const tree_sync::Tree tree = read_code_tree(
      {run.flags.excludes, run.flags.includes, run.flags.run.output_dir, run.flags.env_files});
  const auto changed = changed_since(tree, tree_sync::make_listing(*listing));
  if (changed.empty()) return;
  run.keeps_code = true;
  console.note(
      fmt::format("goes on with the code of {}, as it was sent; since then {} changed "
                  "here: {}; --resync sends the folder as it is now",
                  earlier.run_id, counted(changed.size(), "file"), named_first(changed)));
}

bool gather_code(PendingRun& run, Console& console, const ssh::ConnectOptions& connect) {
  if (run.flags.no_sync) return true;
  run.earlier_code.emplace(console, run.earlier->record(), run.earlier->start(), connect);
  if (!run.earlier_code->gather()) return false;
  if (run.resumes()) return true;
  const std::string& file = run.flags.environment_file;
  const auto found = run.earlier->find_file("--environment", file, run.earlier_code->tree().root);
  if (!found) throw gone(*run.earlier, "--environment", file);
  run.requirements = found->string();
  if (!file.empty()) check_requirements(run.package_needs());
  return true;
}

}  // namespace dtool::cli
