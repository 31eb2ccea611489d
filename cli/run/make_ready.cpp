// SPDX-License-Identifier: MIT
// The hosts of a run, made ready for it.
#include "cli/run/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/console.h"
#include "cli/host_output.h"
#include "cli/plan/code_tree.h"
#include "cli/plan/flags.h"
#include "cli/plan/plan.h"
#include "cli/ready/check_hosts.h"
#include "cli/ready/packages.h"
#include "cli/ready/tree_push.h"
#include "cli/record/recorded.h"
#include "killfiles/killfile.h"
#include "killfiles/nearest.h"
#include "killfiles/version.h"
#include "ssh/fanout/fleet.h"
#include "ssh/quote.h"
#include "ssh/wire/check.h"
#include "sync/pull.h"

namespace dtool::cli {

namespace {

/// Where the code is on this machine, or was: the folder's real path, and the one by which the user
/// came there.
std::vector<std::string> roots_of(const PendingRun& run) {
  if (run.earlier_code) return {run.earlier->record().code.folder};
  const std::filesystem::path here = current_folder();
  std::vector<std::string> roots{here};
  const char* path = std::getenv("PWD");
  std::error_code gone;
  if (path != nullptr && *path == '/' && path != here &&
      std::filesystem::equivalent(path, here, gone))
    roots.emplace_back(path);
  return roots;
}

/// Machines that a scheduler chooses share the tree on its login host.
std::optional<tree_sync::OwnTree> own_tree_on(const PendingRun& run, const ssh::Host& host) {
  for (const MachinePlan& machine : run.plan.machines) {
    if (machine.tree.empty() || !(machine.host == host)) continue;
    return tree_sync::OwnTree{
        killfiles::run_folder(run.plan.run_id), outputs_inside(run.plan.output_dir),
        fmt::format("{}/machine{}{}.written", output_folder(run.plan, machine), machine.id,
                    log_mark(run.plan)),
        run.keeps_code ? machine.code_folder : "", roots_of(run)};
  }
  return std::nullopt;
}

std::vector<std::string> code_folders(const PendingRun& run, const Targets& targets) {
  std::vector<std::string> folders;
  for (const ssh::Host& host : targets.hosts) folders.push_back(run.code_folder_on(host));
  return folders;
}

Needs needs_of(const PendingRun& run, const Targets& targets) {
  Needs needs;
  needs.run_id = run.plan.run_id;
  needs.code_folders = code_folders(run, targets);
  needs.code_must_exist = run.flags.no_sync && !run.plan.program.empty();
  needs.outputs = outputs_of_run(run.plan);
  needs.environment = run.plan.environment;
  for (std::size_t i = 0; i < targets.hosts.size() && run.sends_to_code_folder(); ++i) {
    needs.environment_comes_later |= has_sent(run.plan.environment, needs.code_folders[i]);
    needs.environment = without_sent(std::move(needs.environment), needs.code_folders[i]);
  }
  needs.trainer = run.plan.program.empty();
  if (needs.trainer) {
    needs.experiment_toml = run.plan.experiment;
    if (!run.flags.no_trainer_bundle) offer_trainer(needs);
  }
  needs.visible_gpus.cuda = find_variable(run.plan.variables, "CUDA_VISIBLE_DEVICES");
  needs.visible_gpus.rocr = find_variable(run.plan.variables, "ROCR_VISIBLE_DEVICES");
  needs.visible_gpus.hip = find_variable(run.plan.variables, kAmdsGpus);
  needs.gpus = run.flags.run.gpus;
  needs.port = run.plan.port;
  needs.peer = peer_of(targets);
  needs.machines = static_cast<int>(run.plan.machines.size());
  run.engine->add_needs(run.plan, needs);
  return needs;
}

UsageError fault_of_experiment(const PendingRun& run, const std::string& fault) {
  return UsageError(fmt::format("experiment {}{}: {}", run.plan.what,
                                run.flags.config_kwargs.empty() ? "" : " with --config_kwargs",
                                fault));
}

bool judge(const PendingRun& run, const std::vector<Checked>& checked, std::string_view doing,
           RunReport& report, ssh::Remote& remote) {
  if (!report.all_well(results_of(checked), doing)) return false;
  if (!checked.front().experiment_fault.empty()) {
    discard_run_folders(remote, run.plan.run_id);
    throw fault_of_experiment(run, checked.front().experiment_fault);
  }
  return true;
}

void note_log_out(const std::vector<Checked>& checked, Console& console) {
  std::vector<ssh::Host> at_risk;
  for (const Checked& each : checked)
    if (each.logout_kills) at_risk.push_back(each.result.host);
  if (at_risk.empty()) return;
  console.note(fmt::format(
      "{}: the system ends what you leave running at logout; to keep it: loginctl enable-linger",
      fold_hosts(at_risk)));
}

/// Two names may lead to one machine, which then gets the processes of both.
void note_one_machine_twice(const std::vector<Checked>& checked, Console& console) {
  for (std::size_t i = 0; i < checked.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before) {
      if (compare(checked[before].identity, checked[i].identity) != killfiles::Likeness::same)
        continue;
      console.note(fmt::format("{} and {} are one machine, which gets the processes of both",
                               ssh::to_string(checked[before].result.host),
                               ssh::to_string(checked[i].result.host)));
      break;
    }
  }
}

/// Two runs share a host's cores and GPUs, which is seldom meant.
void note_other_runs(const std::vector<Checked>& checked, const std::string& own,
                     Console& console) {
  std::map<std::string, std::vector<ssh::Host>> hosts;
  for (const Checked& each : checked) {
    for (const std::string& id : each.reply ? each.reply->runs : std::vector<std::string>())
      if (id != own && killfiles::is_run_id(id)) hosts[id].push_back(each.result.host);
  }
  for (const auto& [id, found] : hosts)
    console.note(
        fmt::format("{}: {} still runs there and shares cores and GPUs with this run; to "
                    "end it: dtool kill {}",
                    fold_hosts(found), id, id));
}

/// `h[1-2]: PYTHONPATH=/x of the log-in does not count …`
void note_left_out(const std::vector<Checked>& checked, Console& console) {
  std::map<std::string, std::vector<ssh::Host>> hosts;
  for (const Checked& each : checked) {
    for (const std::string& variable : left_out_variables(each.environment))
      hosts[without_controls(variable)].push_back(each.result.host);
  }
  for (const auto& [variable, found] : hosts)
    console.note(
        fmt::format("{}: {} of the log-in does not count beside the environment that was "
                    "named; --export sets it",
                    fold_hosts(found), variable));
}

/// A shell may leave the environment that was named before it does anything.
void note_log_in_shell(const RunPlan& plan, Console& console) {
  const Environment& environment = plan.environment;
  const bool is_bare = environment.modules.empty() && environment.activate.empty();
  if (is_bare || !reads_log_in_files(plan.program)) return;
  console.note(
      fmt::format("{} {} reads the log-in's files, which may set PATH anew and lead to "
                  "another Python; {} -c keeps to the environment",
                  plan.program[0], plan.program[1], plan.program[0]));
}

/// Takes the identities of hosts that run the machines' sessions. A scheduler's nodes may be asked
/// about on any of its login hosts.
void take_identities(const std::vector<Checked>& checked, RunPlan& plan) {
  for (MachinePlan& machine : plan.machines) {
    if (machine.leader != Leader::screen) continue;
    for (const Checked& each : checked) {
      if (each.result.host == machine.host) machine.identity = each.identity;
    }
  }
}

/// An environment that comes with the code is looked at, and the trainer asked in it, when the code
/// is there: `needs` are then those of hosts that have it.
bool send_before_check(const PendingRun& run, Needs& needs, RunReport& report, Console& console,
                       ssh::Remote& remote, TreePush& push) {
  needs.trainer = false;
  const bool is_well = judge(run, check_hosts(console, remote, needs, &push.steps()),
                             "checking the hosts", report, remote) &&
                       report.all_well(push.finish(remote), "sending the code");
  needs.trainer = run.plan.program.empty();
  needs.environment = run.plan.environment;
  needs.environment_comes_later = false;
  return is_well;
}

/// With --environment: gives it to all hosts. False: a step went wrong, and was reported.
bool make_environment_ready(PendingRun& run, RunReport& report, Console& console,
                            ssh::Remote& remote) {
  if (run.flags.environment_file.empty()) return true;
  const auto judge = [&report](const std::vector<ssh::HostResult>& results,
                               std::string_view doing) { return report.all_well(results, doing); };
  run.plan.environment.activate = supply_environment(console, remote, run.package_needs(), judge);
  return !run.plan.environment.activate.empty();
}

/// With --data. The hosts are looked at before, since copying may take hours; what holds only for a
/// while, such as a free port, is looked at later.
bool bring_data(const PendingRun& run, RunReport& report, Console& console, ssh::Remote& remote,
                const Targets& targets, std::vector<RunData>& data) {
  if (data.empty()) return true;
  Needs needs = needs_of(run, targets);
  needs.run_id.clear();
  needs.is_supervised = false;
  needs.trainer = false;
  needs.experiment_toml.clear();
  return judge(run, check_hosts(console, remote, needs), "checking the hosts", report, remote) &&
         supply_data(console, remote, data,
                     run.flags.force ? tree_sync::Foreign::overwrite : tree_sync::Foreign::refuse);
}

/// A script that is not here may be on the hosts, where it was put by hand. More often its name has
/// a mistake, which is told before the run fails of it.
void note_missing_script(const std::vector<std::string>& program, const tree_sync::Tree& tree,
                         Console& console) {
  const auto script = script_of(program);
  std::error_code unseen;
  if (!script || ssh::is_anchored(*script) || std::filesystem::exists(tree.root / *script, unseen))
    return;
  // The tree's names have no `./`, and a program in the folder is only found with it.
  const std::string name = std::filesystem::path(*script).lexically_normal().string();
  const std::string before = script->starts_with("./") ? "./" : "";
  const auto meant = killfiles::nearest(name, tree.files);
  console.note(fmt::format("{} is not in this folder, so it is not sent{}", *script,
                           meant ? fmt::format("; did you mean {}{}?", before, *meant) : ""));
}

/// A module may be installed on the hosts, unless one of this folder has nearly its name.
void note_missing_module(const std::vector<std::string>& program, const tree_sync::Tree& tree,
                         Console& console) {
  const auto module = module_of(program);
  if (!module) return;
  std::vector<std::string> known;
  for (const std::string& file : tree.files) {
    std::filesystem::path path(file);
    if (path.extension() != ".py") continue;
    const bool is_of_package = path.stem() == "__init__" || path.stem() == "__main__";
    std::string name = is_of_package ? path.parent_path() : path.replace_extension();
    std::ranges::replace(name, '/', '.');
    if (name == *module) return;
    known.push_back(std::move(name));
  }
  if (const auto meant = killfiles::nearest(*module, known))
    console.note(
        fmt::format("there is no module {} in this folder; did you mean {}?", *module, *meant));
}

/// Fetched outputs are no code. A word that names a file among them is a word that the hosts do not
/// understand.
void note_fetched_words(const std::vector<std::string>& program, const tree_sync::Tree& tree,
                        Console& console) {
  std::error_code unseen;
  for (const std::string& word : program) {
    const std::string path = word.substr(word.starts_with('-') ? word.find('=') + 1 : 0);
    const auto name = std::filesystem::path(path).lexically_normal().string();
    if (ssh::is_anchored(path) || !std::filesystem::exists(tree.root / path, unseen) ||
        std::ranges::binary_search(tree.files, name))
      continue;
    for (auto folder = tree.root / name; folder != tree.root && folder.has_relative_path();
         folder = folder.parent_path()) {
      if (!tree_sync::fetched_run(folder)) continue;
      console.note(
          fmt::format("{} was fetched by dtool, so it is not sent with the code; "
                      "--include {} sends it",
                      path, path));
      break;
    }
  }
}

/// Looks at the hosts and sends them the code, each as soon as it has been looked at. Hosts without
/// a trainer are sent that first, and then all are looked at once more.
bool send_code(PendingRun& run, RunReport& report, Console& console, ssh::Remote& remote,
               const Targets& targets) {
  std::optional<tree_sync::Tree> tree;
  std::optional<TreePush> push;
  const std::vector<std::string> folders = code_folders(run, targets);
  std::vector<tree_sync::Destination> destinations;
  for (std::size_t i = 0; i < folders.size(); ++i)
    destinations.push_back({i, run.earlier_code ? run.earlier_code->folder_on_hosts() : folders[i],
                            own_tree_on(run, targets.hosts[i])});
  if (run.earlier_code) tree = run.earlier_code->tree();
  if (run.sends_to_code_folder()) {
    tree = read_code_tree(
        {run.flags.excludes, run.flags.includes, run.flags.run.output_dir, run.flags.env_files});
    for (tree_sync::Destination& each : destinations)
      if (each.own) each.own->folders = tree->empty_folders;
    for (const std::string& note : notes_on_tree(*tree, run.flags.typed_excludes))
      console.note(note);
    // A program is in the tree, or reads it; the trainer has all it needs in the experiment.
    if (!run.plan.program.empty()) {
      tree_sync::require_files(*tree);
      note_missing_script(run.plan.program, *tree, console);
      note_missing_module(run.plan.program, *tree, console);
      note_fetched_words(run.plan.program, *tree, console);
    }
    run.flags.no_sync = tree->files.empty();
  }
  if (!run.wants_sync()) {
    for (MachinePlan& machine : run.plan.machines) machine.tree.clear();
  }
  if (run.earlier_code) {
    const RecordedCode& code = run.record.code = run.earlier->record().code;
    run.plan.git_commit = code.is_dirty ? code.commit + "-dirty" : code.commit;
  } else if (run.wants_sync()) {
    const auto state = state_of_code_tree(run.flags.run.output_dir);
    if (state) run.plan.git_commit = to_string(*state);
    run.record.code = record_code(*tree, state);
  }
  Sending sending;
  if (run.sends_to_code_folder()) sending.large = note_on_size(*tree);
  if (run.flags.relay) sending.relay = tree_sync::Relay::yes;
  if (run.flags.no_relay) sending.relay = tree_sync::Relay::no;
  if (run.flags.force || run.earlier_code) sending.foreign = tree_sync::Foreign::overwrite;
  bool is_code_sent = false;
  const auto next_push = [&]() -> tree_sync::Pushing* {
    if (!run.wants_sync() || is_code_sent) return nullptr;
    push.emplace(console, remote.hosts(), *tree, destinations, sending);
    return &push->steps();
  };
  const auto goes_on = [&](const std::vector<Checked>& checked, std::string_view doing) {
    return judge(run, checked, doing, report, remote);
  };
  SuppliedHosts hosts;
  try {
    Needs needs = needs_of(run, targets);
    if (needs.environment_comes_later && next_push() != nullptr) {
      if (!send_before_check(run, needs, report, console, remote, *push)) return false;
      is_code_sent = true;
    }
    hosts = check_and_supply(console, remote, needs, goes_on, next_push);
  } catch (const UsageError&) {  // about the experiment
    throw;
  } catch (const std::exception& error) {  // this machine's disk is full, for one
    console.fail(error);
    return false;
  }
  if (!hosts.went_on) return false;
  note_log_out(hosts.checked, console);
  note_one_machine_twice(hosts.checked, console);
  note_other_runs(hosts.checked, run.plan.run_id, console);
  note_left_out(hosts.checked, console);
  note_log_in_shell(run.plan, console);
  if (!run.engine->complete(console, run.flags, targets, hosts.checked, run.plan)) return false;
  take_identities(hosts.checked, run.plan);
  if (!run.plan.address.empty()) run.plan.listener = listener_of(run.plan);
  record_plan(run.plan, hosts.checked, run.record);
  if (const tree_sync::Listing* listing = push ? push->steps().listing() : nullptr) {
    run.record.code.fingerprint = listing->fingerprint;
    run.listing = *listing->text;
  }
  return !push || is_code_sent || report.all_well(push->finish(remote), "sending the code");
}

}  // namespace

void require_experiment(const PendingRun& run, Console& console) {
  if (!run.plan.program.empty()) return;
  Needs needs;
  needs.code_folders = {current_folder()};
  needs.trainer = true;
  needs.experiment_toml = run.plan.experiment;
  needs.machines = static_cast<int>(run.plan.machines.size());
  const auto here = ssh::make_fleet({ssh::parse_host("local")}, {});
  const std::string fault = check_hosts(console, *here, needs).front().experiment_fault;
  if (!fault.empty()) throw fault_of_experiment(run, fault);
}

bool make_ready(PendingRun& run, RunReport& report, Console& console, ssh::Remote& remote,
                const Targets& targets, std::vector<RunData>& data) {
  return bring_data(run, report, console, remote, targets, data) &&
         make_environment_ready(run, report, console, remote) &&
         send_code(run, report, console, remote, targets);
}

namespace {

void add_hardware(const Checked& checked, RecordedMachine& machine) {
  if (!checked.reply) return;
  const host::CheckReply& reply = *checked.reply;
  machine.cores = reply.hardware.cores;
  machine.memory = reply.hardware.memory;
  machine.gpus = reply.hardware.gpus;
  machine.driver = reply.hardware.driver;
  machine.trainer = reply.trainer_version;
}

}  // namespace

void record_plan(const RunPlan& plan, const std::vector<Checked>& checked, RunRecord& record) {
  for (const auto& [name, value] : plan.variables) record.variables.push_back(name);
  record.environment = to_json(plan.environment);
  record.dtool_version = killfiles::dtool_version();
  for (const MachinePlan& each : plan.machines) {
    RecordedMachine& machine = record.machines.emplace_back();
    machine.id = each.id;
    machine.host = ssh::to_string(each.host);
    machine.identity = each.identity;
    machine.code_folder = each.code_folder;
    machine.tree = each.tree;
    machine.output_folder = output_folder(plan, each);
    machine.processes = each.processes;
    machine.threads = each.threads;
    if (each.leader != Leader::screen) continue;  // it runs behind the host that was asked
    for (const Checked& host : checked) {
      if (host.result.host == each.host) add_hardware(host, machine);
    }
  }
}

}  // namespace dtool::cli
