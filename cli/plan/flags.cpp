// SPDX-License-Identifier: MIT
#include "cli/plan/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "cli/action.h"
#include "cli/host_output.h"
#include "cli/options.h"
#include "ssh/config/client_config.h"
#include "ssh/host/network.h"
#include "ssh/wire/words.h"

namespace dtool::cli {

namespace {

/// Names of engines that dtool has in another place.
std::string must_be_engine(const std::string& name) {
  if (name == "torchrun")
    return "torchrun goes by a flag of its own: dtool run --torchrun -- train.py";
  if (name == "mpirun" || name == "openmpi") return "mpirun's name is mpi";
  if (name == "local") return "this machine is a host: --runs_on local";
  return "";
}

/// The range of the run's field of that name.
WholeNumbers numbers_of(std::string_view field) {
  const killfiles::Row row = killfiles::row_of(field);
  return {static_cast<std::uint64_t>(row.least), static_cast<std::uint64_t>(row.most)};
}

/// Those of both commands. `code_path`: what that flag is about.
void add_shared_flags(Options& command, RunFlags& flags, const std::vector<std::string>& engines,
                      const std::string& code_path) {
  command
      .add_option(fmt::format("--launcher {}", fmt::join(engines, "|")), flags.run.engine,
                  "what starts the processes (ssh)")
      .check(must_be_engine)
      .one_of(engines);
  command.add_option("--distributed_ip_and_port", flags.listener,
                     "where rank 0 listens: IP:PORT of the first host, or auto (auto)");
  command.add_option("--config_kwargs JSON", flags.config_kwargs,
                     R"(settings to merge into the experiment: '{"train":{"epochs":3}}')");
  command.add_whole_number("-s,--seed", flags.run.seed,
                           "random seed, the same on every machine (any; it is recorded)",
                           {0, std::numeric_limits<std::uint64_t>::max()});
  command.add_option("--environment FILE", flags.environment_file,
                     "install its packages there: requirements.txt, …");
  command.add_option("--extra NAME", flags.extras,
                     "with a uv.lock: an extra of its project to install, too; repeatable");
  command.add_option("--group NAME", flags.groups,
                     "with a uv.lock: a dependency group to install, too; repeatable");
  command.add_flag("--system_site_packages", flags.system_site_packages,
                   "with --environment: the hosts' own Python packages are seen beside it");
  add_environment_flags(command, flags.environment);
  command.add_option("--code_path,--allenact_path PATH", flags.code_path, code_path);
  command.add_option("--output_dir PATH", flags.run.output_dir,
                     "a folder for outputs on the hosts (experiment_output, in the code folder)");
  command.add_option("--extra_tag", flags.extra_tag, "text to include in the run's id");
  command.add_option("-n,--nproc_per_node", flags.nproc_per_node,
                     "processes per machine; auto: one per GPU (auto)");
  command.add_option("--gpus LIST", flags.run.gpus,
                     "the GPUs of each machine to use, such as 0,2 or GPU-UUID (all)");
  command
      .add_option("--on_failure stop|leave", flags.run.on_failure,
                  "when a machine fails: stop the others' processes, or leave them (stop)")
      .one_of({"stop", "leave"});
  command.add_whole_number("--max_restarts N", flags.run.max_restarts,
                           "restarts of the whole run after failures (0)", {0, 1000});
  command.add_whole_number("--lost_after SECONDS", flags.run.lost_after,
                           "a machine without a sign of life for this long has failed (60)",
                           numbers_of("lost_after"));
  command.add_whole_number("--nice N", flags.run.nice,
                           "the niceness of the run's processes: 19 lets all others go first (0)",
                           numbers_of("nice"));
  add_program_flags(command, flags.program);
  command.add_option("--export VAR[=VALUE]", flags.exports,
                     "VAR or VAR=VALUE for its processes; repeatable");
  command.add_option("--env_file FILE", flags.env_files,
                     "a file of lines VAR=VALUE, for secret values; repeatable");
  const auto relay = command.add_flag(
      "--relay", flags.relay,
      "hosts pass the code on to each other, however little it is (three hosts and more: 16 MB)");
  command
      .add_flag("--no_relay", flags.no_relay,
                "this machine sends the code to each host itself; no host opens a port for it")
      .excludes(relay);
  command.add_option("--data SRC[:DST]", flags.data,
                     "files or a folder to copy to all hosts before the start, to the same path or "
                     "to DST; repeatable");
  command.add_flag("--no_trainer_bundle", flags.no_trainer_bundle,
                   "do not send this machine's trainer to hosts that have none");
  command.add_flag("-f,--follow", flags.follow, "print all machines' logs until the run ends");
  command.add_flag("--dry_run", flags.dry_run, "show what would run where, and change nothing");
}

}  // namespace

void add_run_flags(Options& command, RunFlags& flags, const std::vector<std::string>& engines) {
  command.add_option("EXPERIMENT", flags.experiment,
                     "a TOML file, or one that comes with dtool: digits");
  command.footer(
      "`-- PROGRAM ARGS...` runs that program instead of the bundled trainer, once per process, "
      "with MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, "
      "DTOOL_RUN_ID, DTOOL_MACHINE_ID, DTOOL_SEED and DTOOL_OUTPUT_DIR set. Without --runs_on it "
      "runs on this machine.");
  add_host_options(command, flags.hosts);
  const auto resume =
      command.add_option("--resume RUN", flags.resume, "go on from that run's newest checkpoint");
  command
      .add_flag("--resync", flags.resync,
                "with --resume, send the current folder as it is now, and not the run's code")
      .needs(resume);
  command
      .add_flag("--broadcast_outputs", flags.broadcast_outputs,
                "with --resume, each machine goes on with the outputs of machine 0")
      .needs(resume);
  add_shared_flags(command, flags, engines,
                   "where the current folder goes on the hosts (the same path below the home "
                   "folder, else ~/NAME)");
  command.add_option("--exclude PATTERN", flags.excludes, "files not to send; repeatable");
  command.add_option(
      "--include PATH", flags.includes,
      "a file or folder to send although git ignores it or dtool fetched it; repeatable");
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

void add_rerun_flags(Options& command, RunFlags& flags, const std::vector<std::string>& engines) {
  command.add_option("RUN", flags.rerun, "a run's id or a part of it; last, last-1").required();
  command.footer(
      "The run that is started has the same code, settings, seed and hosts, and outputs of its "
      "own. What is given here is used instead. The folder that the code came from is not needed.");
  add_host_options(command, flags.hosts);
  add_shared_flags(command, flags, engines,
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
  use(flags.run.output_dir, settings.output_dir, killfiles::kUsualOutputDir);
  use(flags.nproc_per_node, settings.nproc_per_node, "auto");
  if (!flags.run.lost_after)
    flags.run.lost_after = settings.lost_after.value_or(killfiles::kUsualLostAfter);
  if (settings.relay && !flags.relay && !flags.no_relay)
    (*settings.relay ? flags.relay : flags.no_relay) = true;
  constexpr bool kUnlessTold = true;
  flags.own_tree = !flags.in_place && (flags.own_tree || settings.own_tree.value_or(kUnlessTold));
  flags.typed_excludes = flags.excludes;
  flags.excludes.insert(flags.excludes.end(), settings.exclude.begin(), settings.exclude.end());
}

void add_program_flags(Options& command, ProgramFlags& flags) {
  command.add_flag("--fill", flags.fill,
                   "replace {rank}, {machine_id}, {listener} and the like in the program's words");
  const auto rendezvous =
      command
          .add_option("--rendezvous env|never", flags.rendezvous,
                      "never: the program gets no RANK, MASTER_ADDR and the like (env)")
          .one_of({"env", "never"});
  command
      .add_flag("--independent", flags.independent,
                "each process is a job of its own: rank 0 of 1; a failure ends no other process")
      .excludes(rendezvous);
  command.add_whole_number(
      "--ends_with MACHINE", flags.ends_with,
      "the run ends well when this machine's program does; the others' are ended");
}

std::optional<std::string_view> find_placeholder(const std::vector<std::string>& program) {
  for (const std::string& word : program) {
    for (const std::string_view each : kPlaceholders) {
      if (word.find(each) != word.npos) return each;
    }
  }
  return std::nullopt;
}

void take_program_flags(const ProgramFlags& flags, RunPlan& plan) {
  const bool is_torchrun = plan.environment.torchrun != Torchrun::no;
  const char* given = flags.fill                    ? "--fill"
                      : flags.independent           ? "--independent"
                      : flags.rendezvous == "never" ? "--rendezvous never"
                                                    : nullptr;
  if (given != nullptr && plan.program.empty())
    throw UsageError(fmt::format("{} is about a program, and the bundled trainer runs", given),
                     "a program and its words go after --");
  if (is_torchrun && given != nullptr && !flags.fill)
    throw UsageError(
        fmt::format("{} does not go with --torchrun, which joins the processes", given),
        "give one of them");
  const auto has_word = [&plan](std::string_view placeholder) {
    return std::ranges::any_of(plan.program, [&placeholder](const std::string& each) {
      return each.find(placeholder) != each.npos;
    });
  };
  if (flags.fill && is_torchrun && (has_word("{rank}") || has_word("{local_rank}")))
    throw UsageError("torchrun gives the ranks, so --fill does not know {rank} and {local_rank}",
                     "the program finds RANK and LOCAL_RANK among its variables");
  plan.fill = flags.fill;
  if (flags.rendezvous == "never") plan.rendezvous = "never";
  if (flags.independent) {
    if (plan.max_restarts > 0)
      throw UsageError(
          "--max_restarts starts the whole run again, and --independent leaves the "
          "other processes alone",
          "give one of them");
    plan.rendezvous = "independent";
    plan.on_failure = RunPlan::kLeave;
  }
  if (!flags.ends_with) return;
  if (plan.engine != "ssh")
    throw UsageError(
        fmt::format("--ends_with goes with --launcher ssh, and this run uses {}", plan.engine));
  if (plan.on_failure == RunPlan::kLeave)
    throw UsageError(
        "--ends_with ends the other machines' programs, and --independent and "
        "--on_failure leave let them go on",
        "give one of them");
  if (*flags.ends_with >= static_cast<int>(plan.machines.size()))
    throw UsageError(fmt::format("--ends_with {}: the run has no such machine", *flags.ends_with),
                     plan.machines.size() == 1
                         ? "its only machine has the id 0"
                         : fmt::format("its machines are 0 to {}", plan.machines.size() - 1));
  plan.ends_with = flags.ends_with;
}

namespace {

/// The names that mean this host.
bool is_called(const ssh::Host& host, const std::string& name, const ssh::ClientConfig& config) {
  if (host.is_local) return is_loopback(name) || !host::interface_of(name).empty();
  return name == host.name || name == config.resolve(host).address;
}

}  // namespace

bool is_loopback(const std::string& name) {
  return name.starts_with("127.") || name == "localhost" || name == "local" || name == "::1";
}

ListenerAddress parse_listener(const std::string& text, const Targets& targets) {
  const std::size_t colon = text.rfind(':');
  const auto port = colon == text.npos ? std::nullopt
                                       : host::parse_port(std::string_view(text).substr(colon + 1));
  if (!port || colon == 0) {
    throw UsageError(fmt::format("--distributed_ip_and_port wants IP:PORT or auto, not {}", text),
                     "the port is a number from 1 to 65535");
  }
  std::string address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']'))
    address = address.substr(1, address.size() - 2);
  const auto config =
      ssh::ClientConfig::read(targets.connect.config_file, targets.connect.settings);
  for (std::size_t i = 0; i < targets.hosts.size(); ++i) {
    if (!is_called(targets.hosts[i], address, config)) continue;
    // Hosts may not know the name, and their sessions look none up.
    const bool is_name = host::parse_address(address, *port).size == 0 && !is_loopback(address);
    if (i == 0) return {is_name ? "" : address, *port};
    throw UsageError(fmt::format("--distributed_ip_and_port: {} is machine {}, but rank 0 listens "
                                 "on the first machine, {}",
                                 address, i, ssh::to_string(targets.hosts.front())),
                     fmt::format("name {} first in --runs_on", address));
  }
  throw UsageError(fmt::format("--distributed_ip_and_port: {} is not one of the hosts {}", address,
                               fold_hosts(targets.hosts)),
                   "rank 0 listens on the first of them; auto takes that one and a free port");
}

std::string peer_of(const Targets& targets) {
  const auto peer = std::ranges::find(targets.hosts, false, &ssh::Host::is_local);
  if (peer == targets.hosts.begin() || peer == targets.hosts.end()) return {};
  return ssh::ClientConfig::read(targets.connect.config_file, targets.connect.settings)
      .resolve(*peer)
      .address;
}

int parse_processes(const std::string& text) {
  const auto number = host::parse_number<int>(text);
  if (!number || *number < 1 || *number > kMostProcesses)
    throw UsageError(fmt::format("--nproc_per_node wants a number from 1 to {} or auto, not {}",
                                 kMostProcesses, text));
  return *number;
}

}  // namespace dtool::cli
