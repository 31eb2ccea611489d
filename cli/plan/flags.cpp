// SPDX-License-Identifier: MIT
#include "cli/plan/flags.h"

#include <fmt/format.h>

#include <limits>

#include "cli/flag_values.h"

namespace dtool::cli {
namespace {

/// Names of launchers that dtool has in another place.
std::string must_be_launcher(const std::string& name) {
  if (name == "torchrun")
    return "torchrun goes by a flag of its own: dtool run --torchrun -- train.py";
  if (name == "mpirun" || name == "openmpi") return "mpirun's name is mpi";
  if (name == "local") return "this machine is a host: --runs_on local";
  return "";
}

/// Those of both commands. `code_path`: what that flag is about.
void add_shared_flags(Options& command, RunFlags& flags, const std::vector<std::string>& launchers,
                      const std::string& code_path) {
  command.add_option("--launcher", flags.launcher, "what starts the processes (ssh)")
      .type_name(fmt::format("{}", fmt::join(launchers, "|")))
      .check(must_be_launcher)
      .one_of(launchers);
  command.add_option("--distributed_ip_and_port", flags.listener,
                     "where rank 0 listens: IP:PORT of the first host, or auto (auto)");
  command
      .add_option("--config_kwargs", flags.config_kwargs,
                  R"(settings to merge into the experiment: '{"train":{"epochs":3}}')")
      .type_name("JSON");
  command.add_whole_number("-s,--seed", flags.seed,
                           "random seed, the same on every machine (any; it is recorded)",
                           {0, std::numeric_limits<std::uint64_t>::max()});
  command
      .add_option(
          "--environment", flags.environment_file,
          "packages of a requirements.txt, uv.lock or environment.yml, installed on each host")
      .type_name("FILE")
      .check(must_not_be_empty);
  command
      .add_option("--extra", flags.extras,
                  "with a uv.lock: an extra of its project to install, too; repeatable")
      .type_name("NAME")
      .check(must_not_be_empty)
      .one_value_each();
  command
      .add_option("--group", flags.groups,
                  "with a uv.lock: a dependency group to install, too; repeatable")
      .type_name("NAME")
      .check(must_not_be_empty)
      .one_value_each();
  command.add_flag("--system_site_packages", flags.system_site_packages,
                   "with --environment: the hosts' own Python packages are seen beside it");
  add_environment_flags(command, flags.environment);
  command.add_option("--code_path,--allenact_path", flags.code_path, code_path)
      .check(must_not_be_empty)
      .type_name("PATH");
  command
      .add_option("--output_dir", flags.output_dir,
                  "a folder for outputs on the hosts (experiment_output, in the code folder)")
      .type_name("PATH");
  command.add_option("--extra_tag", flags.extra_tag, "text to include in the run's id");
  command.add_option("--nproc_per_node", flags.nproc_per_node,
                     "processes per machine; auto: one per GPU, else 1 (auto)");
  command
      .add_option("--gpus", flags.gpus,
                  "the GPUs of each machine to use, such as 0,2 or GPU-UUID (all)")
      .type_name("LIST");
  command
      .add_option("--on_failure", flags.on_failure,
                  "when a machine fails: stop the others' processes, or leave them (stop)")
      .type_name("stop|leave")
      .one_of({"stop", "leave"});
  command
      .add_whole_number("--max_restarts", flags.max_restarts,
                        "restart the whole run after a failure, at most N times (0)", {0, 1000})
      .type_name("N");
  command
      .add_whole_number("--lost_after", flags.lost_after,
                        "a machine without a sign of life for this long has failed (60)",
                        {1, kLongestSilence})
      .type_name("SECONDS");
  add_program_flags(command, flags.program);
  command
      .add_option("--export", flags.exports, "VAR or VAR=VALUE for the run's processes; repeatable")
      .type_name("VAR[=VALUE]")
      .one_value_each();
  command
      .add_option("--env_file", flags.env_files,
                  "a file of lines VAR=VALUE, for secret values; repeatable")
      .type_name("FILE")
      .check(must_not_be_empty)
      .one_value_each();
  const auto relay = command.add_flag(
      "--relay", flags.relay,
      "hosts pass the code on to each other, however little it is (three hosts and more: 16 MB)");
  command
      .add_flag("--no_relay", flags.no_relay,
                "this machine sends the code to each host itself; no host opens a port for it")
      .excludes(relay);
  command
      .add_option("--data", flags.data,
                  "files or a folder to copy to all hosts before the start, to the same path or "
                  "to DST; repeatable")
      .type_name("SRC[:DST]")
      .check(must_not_be_empty)
      .one_value_each();
  command.add_flag("--no_trainer_bundle", flags.no_trainer_bundle,
                   "do not send this machine's trainer to hosts that have none");
  command.add_flag("--follow", flags.follow,
                   "print all machines' logs until the run ends (at a terminal, an EXPERIMENT "
                   "without hosts: on)");
  command.add_flag("--dry_run", flags.dry_run, "show what would run where, and change nothing");
}

}  // namespace

void add_run_flags(Options& command, RunFlags& flags, const std::vector<std::string>& launchers) {
  command.add_option("EXPERIMENT", flags.experiment,
                     "a TOML file, or the name of an experiment that comes with dtool");
  command.footer(
      "`-- PROGRAM ARGS...` runs that program instead of the bundled trainer, once per process, "
      "with MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, "
      "DTOOL_RUN_ID, DTOOL_MACHINE_ID, DTOOL_SEED and DTOOL_OUTPUT_DIR set. Without --runs_on it "
      "runs on this machine.");
  add_host_options(command, flags.hosts);
  const auto resume =
      command
          .add_option("--resume", flags.resume,
                      "go on from the newest checkpoint of that run, with its flags "
                      "and its code")
          .type_name("RUN")
          .check(must_not_be_empty);
  command
      .add_flag("--resync", flags.resync,
                "with --resume, send the current folder as it is now, and not the run's code")
      .needs(resume);
  command
      .add_flag("--broadcast_outputs", flags.broadcast_outputs,
                "with --resume, each machine goes on with the outputs of machine 0")
      .needs(resume);
  add_shared_flags(command, flags, launchers,
                   "where the current folder goes on the hosts (the same path below the home "
                   "folder, else ~/NAME)");
  command.add_option("--exclude", flags.excludes, "files not to send; repeatable")
      .type_name("PATTERN")
      .one_value_each();
  command
      .add_option(
          "--include", flags.includes,
          "a file or folder to send although git ignores it or dtool fetched it; repeatable")
      .type_name("PATH")
      .check(must_not_be_empty)
      .one_value_each();
  const auto no_sync =
      command.add_flag("--no_sync", flags.no_sync, "do not send the current folder")
          .excludes(*command.find("--relay"))
          .excludes(*command.find("--no_relay"));
  command
      .add_flag("--force", flags.force,
                "overwrite files in the hosts' code folders that are not as dtool sent them")
      .excludes(no_sync);
  const auto own_tree =
      command
          .add_flag("--own_tree", flags.own_tree, "run in a copy of the code that is the run's own")
          .excludes(no_sync);
  command.add_flag("--in_place", flags.in_place, "run in the code folder itself")
      .excludes(own_tree);
}

void add_rerun_flags(Options& command, RunFlags& flags, const std::vector<std::string>& launchers) {
  command.add_option("RUN", flags.rerun, "the run to repeat: its id, or the beginning of one")
      .required()
      .check(must_not_be_empty);
  command.footer(
      "The run that is started has the same code, settings, seed and hosts, and outputs of its "
      "own. What is given here is used instead. The folder that the code came from is not needed.");
  add_host_options(command, flags.hosts);
  add_shared_flags(command, flags, launchers,
                   "the code folder on the hosts, with the outputs and the files that were not "
                   "sent (as it was)");
  command.find("--seed")->description("another random seed (the earlier run's)");
}

void apply_settings(const Settings& settings, RunFlags& flags) {
  const auto use = [](std::string& flag, const std::optional<std::string>& setting,
                      const char* otherwise) {
    if (flag.empty()) flag = setting.value_or(otherwise);
  };
  use(flags.code_path, settings.code_path, "");
  use(flags.output_dir, settings.output_dir, "experiment_output");
  use(flags.nproc_per_node, settings.nproc_per_node, "auto");
  if (!flags.lost_after) flags.lost_after = settings.lost_after;
  if (settings.relay && !flags.relay && !flags.no_relay)
    (*settings.relay ? flags.relay : flags.no_relay) = true;
  constexpr bool kUnlessTold = true;
  flags.own_tree = !flags.in_place && (flags.own_tree || settings.own_tree.value_or(kUnlessTold));
  flags.typed_excludes = flags.excludes;
  flags.excludes.insert(flags.excludes.end(), settings.exclude.begin(), settings.exclude.end());
}

}  // namespace dtool::cli
