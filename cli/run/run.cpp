// SPDX-License-Identifier: MIT
// `dtool run` and `dtool rerun`: checks the hosts, sends the code tree, records the killfile,
// starts one screen session per machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <random>

#include "cli/action.h"
#include "cli/failures.h"
#include "cli/host_options.h"
#include "cli/launchers/launcher.h"
#include "cli/new_run.h"
#include "cli/record/record.h"
#include "cli/recorded.h"
#include "cli/run/check.h"
#include "cli/run/code_tree.h"
#include "cli/run/data.h"
#include "cli/run/earlier_code.h"
#include "cli/run/earlier_outputs.h"
#include "cli/run/earlier_run.h"
#include "cli/run/environment/exports.h"
#include "cli/run/experiment.h"
#include "cli/run/flags.h"
#include "cli/run/listener.h"
#include "cli/run/plan.h"
#include "cli/run/python_environment.h"
#include "cli/run/record_plan.h"
#include "cli/run/report.h"
#include "cli/run/resume.h"
#include "cli/run/start.h"
#include "cli/run/supply.h"
#include "cli/run/tree_push.h"
#include "cli/run/wheels.h"
#include "ssh/fleet.h"
#include "ssh/host/child.h"
#include "ssh/machine/random_hex.h"

namespace dtool::cli {
namespace {

using namespace std::string_literals;

/// A word of each launcher, with `between` in between.
std::string joined(const std::vector<const Launcher*>& launchers,
                   std::string_view (Launcher::*word)() const, std::string_view between) {
  std::vector<std::string_view> words;
  for (const Launcher* launcher : launchers) words.push_back((launcher->*word)());
  return fmt::format("{}", fmt::join(words, between));
}

class RunAction : public Action {
 public:
  explicit RunAction(Start start) : start_(start) {}
  void add_options(Options& command) override;
  int run(Invocation& invocation) override;

 private:
  void take_up(const Invocation& invocation);
  bool resumes() const { return earlier_ && earlier_->start() == Start::resumed; }
  bool repeats() const { return earlier_ && earlier_->start() == Start::rerun; }
  bool sends_to_code_folder() const { return wants_sync() && !repeats(); }
  bool gather_code(Console& console, const Targets& targets);
  void find_files();
  UsageError gone(const std::string& flag, const std::string& file) const;
  void refuse_others_flags() const;
  void refuse_other_environments();
  void make_plan(const Invocation& invocation, const Targets& targets);
  void take_program(const Invocation& invocation);
  bool needs_code() const;
  std::string code_folder_on(const ssh::Host& host) const;
  bool wants_sync() const;
  Follow follow(const Console& console, const Settings& settings) const;
  void require_program(const Targets& targets) const;
  std::vector<std::string> code_folders(const Targets& targets) const;
  std::optional<tree_sync::OwnTree> own_tree_on(const ssh::Host& host) const;
  Needs needs(const std::vector<std::string>& code_folders) const;
  bool send_before_trainer(Needs& needs, RunReport& report, Console& console, ssh::Remote& remote,
                           TreePush& push) const;
  bool make_environment_ready(RunReport& report, Console& console, ssh::Remote& remote);
  bool bring_data(RunReport& report, Console& console, ssh::Remote& remote, const Targets& targets,
                  std::vector<RunData>& data) const;
  bool make_ready(RunReport& report, Console& console, ssh::Remote& remote, const Targets& targets);
  void keep_record(const std::vector<std::string>& command_line);
  std::string record_for_hosts() const;
  int look_back(Invocation& invocation, EarlierOutputs& outputs, RunReport& report) const;
  bool bring(EarlierOutputs& outputs, ssh::Remote& remote, RunReport& report, Console& console,
             const std::vector<std::string>& command_line);
  bool judge(const std::vector<Checked>& checked, std::string_view doing, RunReport& report,
             ssh::Remote& remote) const;

  std::vector<std::unique_ptr<Launcher>> launchers_ = make_launchers();
  const Launcher* launcher_ = nullptr;                          ///< the one that is used
  std::map<Option, std::vector<const Launcher*>> own_options_;  ///< of some launchers
  RunFlags flags_;
  RunPlan plan_;
  RunRecord record_;
  std::optional<Options> command_;
  Start start_;
  std::optional<EarlierRun> earlier_;
  std::optional<EarlierCode> earlier_code_;
  std::string requirements_;  ///< the file of --environment; empty: not given, or not here yet
  std::optional<std::string> listing_;  ///< of the code, for the record
  bool experiment_is_shipped_ = false;
};

void RunAction::add_options(Options& command) {
  command_.emplace(command);
  start_ == Start::rerun ? add_rerun_flags(command, flags_) : add_run_flags(command, flags_);
  for (const auto& launcher : launchers_) {
    for (const Option option : launcher->add_options(command))
      own_options_[option].push_back(launcher.get());
  }
  for (const auto& [option, takers] : own_options_)
    option.group(joined(takers, &Launcher::title, " and "));
}

/// The run to go on from, or to repeat, gives what the user has not.
void RunAction::take_up(const Invocation& invocation) {
  const bool names_data = !flags_.data.empty();
  if (start_ == Start::rerun) {
    earlier_.emplace(flags_.rerun, start_);
    earlier_->give_flags(*command_);
    flags_.no_sync = earlier_->record().code.folder.empty();
    flags_.own_tree = true;
    if (flags_.no_sync && !earlier_->record().program.empty())
      invocation.console.note(
          fmt::format("the code of {} was not sent, and is not known: what the hosts have now runs",
                      earlier_->record().run_id));
    if (!names_data) leave_out_gone(invocation.console, flags_.data);
    return;
  }
  if (flags_.resume.empty()) return;
  if (!flags_.experiment.empty() || !invocation.program.empty())
    throw UsageError(
        fmt::format("--resume runs what {} ran, and {} was named, too", flags_.resume,
                    flags_.experiment.empty() ? invocation.program.front() : flags_.experiment),
        "leave it out; --config_kwargs changes settings of the experiment");
  earlier_.emplace(flags_.resume, Start::resumed);
  earlier_->give_flags(*command_);
  // Who goes on from a run expects its code; the hosts may have been sent another one since.
  if (flags_.no_sync && !earlier_->record().program.empty())
    invocation.console.note(fmt::format(
        "--no_sync: the code that the hosts have now runs, whether or not it is still that of {}",
        earlier_->record().run_id));
  flags_.no_sync = flags_.no_sync || !earlier_->sends_code();
  if (!names_data) leave_out_gone(invocation.console, flags_.data);
}

void RunAction::refuse_others_flags() const {
  for (const auto& [option, takers] : own_options_) {
    if (option.is_given() && !std::ranges::count(takers, launcher_))
      throw UsageError(fmt::format("{} goes with --launcher {}, and this run uses {}",
                                   option.name(), joined(takers, &Launcher::name, " or "),
                                   launcher_->name()));
  }
}

/// Files of this machine that the flags name. Those of the run to repeat are looked for where they
/// were then; the requirements may be in its code, which comes here later.
void RunAction::find_files() {
  requirements_ = flags_.environment_file;
  if (!repeats()) return;
  for (std::string& file : flags_.env_files) {
    const auto found = earlier_->find_file("--env_file", file, {});
    if (!found) throw gone("--env_file", file);
    file = found->string();
  }
  requirements_ =
      earlier_->find_file("--environment", flags_.environment_file, {}).value_or("").string();
}

UsageError RunAction::gone(const std::string& flag, const std::string& file) const {
  return UsageError(fmt::format("{} had {} {}, which is gone from {}", earlier_->record().run_id,
                                flag, file, earlier_->record().code.folder),
                    fmt::format("{} FILE names another", flag));
}

/// The code of the run to repeat comes here. False: interrupted.
bool RunAction::gather_code(Console& console, const Targets& targets) {
  if (flags_.no_sync) return true;
  earlier_code_.emplace(console, earlier_->record(), targets.connect);
  if (!earlier_code_->gather()) return false;
  const std::string& file = flags_.environment_file;
  const auto found = earlier_->find_file("--environment", file, earlier_code_->tree().root);
  if (!found) throw gone("--environment", file);
  requirements_ = found->string();
  if (!file.empty()) check_requirements(requirements_);
  return true;
}

/// The bundled trainer with an experiment that came with dtool needs nothing of the current folder.
bool RunAction::needs_code() const {
  return !plan_.program.empty() || !experiment_is_shipped_;
}

std::string RunAction::code_folder_on(const ssh::Host& host) const {
  const auto earlier = earlier_ ? earlier_->code_folder_on(host) : std::nullopt;
  if (earlier) return *earlier;
  const bool anywhere = !needs_code() && !host.is_local && flags_.code_path.empty();
  if (anywhere) return "~/dtool_runs";
  const bool is_elsewhere = repeats() && !earlier_->record().code.folder.empty();
  return code_folder(
      host, flags_.code_path,
      is_elsewhere ? std::filesystem::path(earlier_->record().code.folder) : current_folder());
}

bool RunAction::wants_sync() const {
  return !flags_.no_sync && needs_code();
}

/// Who starts a training on this machine alone, at a terminal and without naming hosts, is there to
/// see it.
Follow RunAction::follow(const Console& console, const Settings& settings) const {
  if (flags_.follow) return Follow::yes;
  // Those of an earlier run are named for the user.
  const bool names_hosts =
      earlier_
          ? !std::ranges::all_of(plan_.machines,
                                 [](const auto& each) { return each.host.is_local; })
          : !flags_.hosts.runs_on.empty() || !flags_.hosts.hostfile.empty() || settings.runs_on;
  const bool is_here = plan_.launcher == "ssh" && !names_hosts;
  const bool is_seen = console.is_terminal(To::out) && !console.json() && !console.quiet();
  return plan_.program.empty() && is_here && is_seen ? Follow::unasked : Follow::no;
}

/// A program that is not there is known at once if it is to run on this machine alone, as it is.
void RunAction::require_program(const Targets& targets) const {
  const Environment& environment = plan_.environment;
  const bool is_plain = environment.modules.empty() && environment.activate.empty() &&
                        !environment.container && environment.torchrun == Torchrun::no &&
                        plan_.launcher == "ssh" && flags_.code_path.empty();
  if (plan_.program.empty() || !is_plain ||
      !std::ranges::all_of(targets.hosts, &ssh::Host::is_local))
    return;
  if (std::ranges::any_of(plan_.variables, [](const auto& each) { return each.first == "PATH"; }))
    return;
  const std::string& program = plan_.program.front();
  if (!host::find_program(program).empty()) return;
  const bool is_path = program.find('/') != program.npos;
  std::error_code unseen;
  const bool is_file = std::filesystem::is_regular_file(program, unseen);
  if (is_path && is_file)
    throw UsageError(program + " may not be executed",
                     "chmod +x, or name the program that reads it first");
  throw UsageError(program + ": no such program on this machine",
                   is_file
                       ? "it is in the current folder: ./" + program
                       : "it is looked for " + (is_path ? "from the current folder" : "in PATH"s));
}

/// What runs: the experiment, the program, or those of the earlier run.
void RunAction::take_program(const Invocation& invocation) {
  const int machines = static_cast<int>(plan_.machines.size());
  plan_.program = invocation.program;
  if (earlier_) {
    const RunRecord& earlier = earlier_->record();
    if (resumes()) plan_.chain = earlier_->chain();
    if (repeats()) plan_.rerun_of = earlier.run_id;
    plan_.program = earlier.program;
    plan_.what = earlier.what;
    experiment_is_shipped_ = earlier.code.folder.empty();
    if (earlier.experiment.empty()) {
      check_config_kwargs(flags_.config_kwargs, machines);
    } else {
      const auto changed = resumes() ? resumed_experiment : repeated_experiment;
      plan_.experiment_toml =
          changed(earlier.what, earlier.experiment, flags_.config_kwargs, machines).toml;
    }
  } else if (!flags_.experiment.empty()) {
    const ExperimentText experiment =
        read_experiment(flags_.experiment, flags_.config_kwargs, machines);
    plan_.experiment_toml = experiment.toml;
    experiment_is_shipped_ = experiment.is_shipped;
    plan_.what = experiment.name;
  } else if (plan_.program.empty()) {
    throw UsageError("nothing to run was named",
                     "dtool run digits trains the experiment that comes with dtool; dtool run -- "
                     "PROGRAM runs any program");
  } else {
    check_config_kwargs(flags_.config_kwargs, machines);
    plan_.what = name_of_program(plan_.program);
  }
}

void RunAction::make_plan(const Invocation& invocation, const Targets& targets) {
  plan_.launcher = launcher_->name();
  launcher_->place(flags_, targets, plan_);
  take_program(invocation);
  if (flags_.nproc_per_node != "auto") parse_processes(flags_.nproc_per_node);
  plan_.run_id =
      make_run_id(flags_.extra_tag.empty() ? plan_.what : plan_.what + "_" + flags_.extra_tag);
  plan_.token = ssh::random_hex(16);
  // A seed that every library accepts.
  plan_.seed = flags_.seed.value_or(std::random_device()() & 0x7fffffffU);
  plan_.on_failure = flags_.on_failure == "leave" ? OnFailure::leave : OnFailure::stop;
  plan_.max_restarts = flags_.max_restarts.value_or(0);
  if (flags_.lost_after) plan_.lost_after = std::chrono::seconds(*flags_.lost_after);
  if (plan_.on_failure == OnFailure::leave && plan_.max_restarts > 0)
    throw UsageError("--max_restarts starts again what --on_failure leave does not stop",
                     "leave --on_failure away");
  plan_.environment = make_environment(flags_.environment, invocation.settings.all());
  if (!flags_.environment_file.empty()) refuse_other_environments();
  check_torchrun(plan_.environment, plan_.program);
  plan_.output_dir = flags_.output_dir;
  plan_.variables.assign(invocation.settings.all().environment.begin(),
                         invocation.settings.all().environment.end());
  for (const std::string& file : flags_.env_files) {
    for (auto& variable : read_env_file(file)) plan_.variables.push_back(std::move(variable));
  }
  for (const std::string& text : flags_.exports) plan_.variables.push_back(parse_export(text));
  if (!flags_.gpus.empty()) {
    Variable gpus = parse_gpus(flags_.gpus);
    for (const std::string_view name : {std::string_view(gpus.first), kAmdsGpus}) {
      if (find_variable(plan_.variables, name))
        throw UsageError(
            fmt::format("--gpus sets {}, and --export, --env_file or the settings do too", name),
            "give one of them");
    }
    plan_.variables.push_back(std::move(gpus));
    plan_.gpus = flags_.gpus;
  }
  if (earlier_) earlier_->require_variables(plan_);
  if (flags_.listener != "auto") {
    const ListenerAddress listener = parse_listener(flags_.listener, targets);
    plan_.listener = listener.address;
    plan_.port = listener.port;
  }
  const bool has_own_tree = wants_sync() && flags_.own_tree;
  for (MachinePlan& machine : plan_.machines) {
    machine.code_folder = code_folder_on(machine.host);
    if (has_own_tree) machine.tree = killfiles::tree_folder(plan_.run_id);
  }
}

/// Machines that a scheduler chooses share the tree on its login host.
std::optional<tree_sync::OwnTree> RunAction::own_tree_on(const ssh::Host& host) const {
  for (const MachinePlan& machine : plan_.machines) {
    if (machine.tree.empty() || !(machine.host == host)) continue;
    return tree_sync::OwnTree{killfiles::run_folder(plan_.run_id), outputs_inside(plan_.output_dir),
                              fmt::format("{}/machine{}{}.written", output_folder(plan_, machine),
                                          machine.id, log_mark(plan_)),
                              repeats() ? machine.code_folder : ""};
  }
  return std::nullopt;
}

/// --environment brings a Python environment, and the settings' one does not count then.
void RunAction::refuse_other_environments() {
  if (!requirements_.empty()) check_requirements(requirements_);
  const Environment& environment = plan_.environment;
  const char* other = !flags_.environment.activate.empty() ? "--env_activate_path"
                      : environment.container              ? "a container"
                      : !environment.modules.empty()       ? "--modules"
                                                           : nullptr;
  if (other != nullptr)
    throw UsageError(fmt::format("--environment builds an environment of its own, and {} leads to "
                                 "another",
                                 other),
                     "give one of them");
  plan_.environment.activate.clear();
  plan_.environment.requirements = flags_.environment_file;
}

std::vector<std::string> RunAction::code_folders(const Targets& targets) const {
  std::vector<std::string> folders;
  for (const ssh::Host& host : targets.hosts) folders.push_back(code_folder_on(host));
  return folders;
}

Needs RunAction::needs(const std::vector<std::string>& code_folders) const {
  Needs needs;
  needs.run_id = plan_.run_id;
  needs.code_folders = code_folders;
  needs.code_must_exist = flags_.no_sync && !plan_.program.empty();
  needs.environment = plan_.environment;
  for (std::size_t i = 0; i < code_folders.size() && sends_to_code_folder(); ++i) {
    needs.environment_comes_later |= has_sent(plan_.environment, code_folders[i]);
    needs.environment = without_sent(std::move(needs.environment), code_folders[i]);
  }
  needs.trainer = plan_.program.empty();
  if (needs.trainer) {
    needs.experiment_toml = plan_.experiment_toml;
    if (!flags_.no_trainer_bundle) offer_trainer(needs);
  }
  needs.visible_gpus.cuda = find_variable(plan_.variables, "CUDA_VISIBLE_DEVICES");
  needs.visible_gpus.rocr = find_variable(plan_.variables, "ROCR_VISIBLE_DEVICES");
  needs.visible_gpus.hip = find_variable(plan_.variables, kAmdsGpus);
  needs.gpus = flags_.gpus;
  needs.sync = wants_sync();
  needs.port = plan_.port;
  needs.machines = static_cast<int>(plan_.machines.size());
  launcher_->add_needs(plan_, needs);
  return needs;
}

bool RunAction::judge(const std::vector<Checked>& checked, std::string_view doing,
                      RunReport& report, ssh::Remote& remote) const {
  std::vector<ssh::HostResult> results;
  for (const Checked& each : checked) results.push_back(each.result);
  if (!report.all_well(results, doing)) return false;
  if (!checked.front().experiment_fault.empty()) {
    discard_run_folders(remote, plan_.run_id);
    throw UsageError(fmt::format("experiment {}{}: {}", plan_.what,
                                 flags_.config_kwargs.empty() ? "" : " with --config_kwargs",
                                 checked.front().experiment_fault));
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

/// The trainer is asked in the run's environment. If that comes with the code, the code goes first,
/// and `needs` are then those of hosts that have it.
bool RunAction::send_before_trainer(Needs& needs, RunReport& report, Console& console,
                                    ssh::Remote& remote, TreePush& push) const {
  needs.trainer = false;
  const bool is_well = judge(check_hosts(console, remote, needs, &push.steps()),
                             "checking the hosts", report, remote) &&
                       report.all_well(push.finish(remote), "sending the code");
  needs.trainer = true;
  needs.environment = plan_.environment;
  needs.environment_comes_later = false;
  return is_well;
}

/// With --environment: gives it to all hosts. False: a step went wrong, and was reported.
bool RunAction::make_environment_ready(RunReport& report, Console& console, ssh::Remote& remote) {
  if (flags_.environment_file.empty()) return true;
  const auto judge = [&report](const std::vector<ssh::HostResult>& results,
                               std::string_view doing) { return report.all_well(results, doing); };
  plan_.environment.activate = supply_environment(console, remote, requirements_, judge);
  return !plan_.environment.activate.empty();
}

/// With --data. The hosts are looked at before, since copying may take hours; what holds only for a
/// while, such as a free port, is looked at later.
bool RunAction::bring_data(RunReport& report, Console& console, ssh::Remote& remote,
                           const Targets& targets, std::vector<RunData>& data) const {
  if (data.empty()) return true;
  Needs needs = this->needs(code_folders(targets));
  needs.run_id.clear();
  needs.is_supervised = false;
  needs.trainer = false;
  needs.experiment_toml.clear();
  return judge(check_hosts(console, remote, needs), "checking the hosts", report, remote) &&
         supply_data(console, remote, data);
}

/// Looks at the hosts and sends them the code, each as soon as it has been looked at. Hosts without
/// a trainer are sent that first, and then all are looked at once more.
bool RunAction::make_ready(RunReport& report, Console& console, ssh::Remote& remote,
                           const Targets& targets) {
  std::optional<tree_sync::Tree> tree;
  std::optional<TreePush> push;
  const std::vector<std::string> folders = code_folders(targets);
  std::vector<tree_sync::Destination> destinations;
  for (std::size_t i = 0; i < folders.size(); ++i)
    destinations.push_back({i, earlier_code_ ? earlier_code_->folder_on_hosts() : folders[i],
                            own_tree_on(targets.hosts[i])});
  if (earlier_code_) tree = earlier_code_->tree();
  if (sends_to_code_folder()) {
    tree = read_code_tree(flags_.excludes, flags_.output_dir, flags_.env_files);
    // A program is in the tree, or reads it; the trainer has all it needs in the experiment.
    if (!plan_.program.empty()) tree_sync::require_files(*tree);
    flags_.no_sync = tree->files.empty();
  }
  if (!wants_sync()) {
    for (MachinePlan& machine : plan_.machines) machine.tree.clear();
  }
  if (earlier_code_) {
    const RecordedCode& code = record_.code = earlier_->record().code;
    plan_.git_commit = code.is_dirty ? code.commit + "-dirty" : code.commit;
  } else if (wants_sync()) {
    const auto state = state_of_code_tree(flags_.output_dir);
    if (state) plan_.git_commit = to_string(*state);
    record_.code = record_code(*tree, state);
  }
  Sending sending;
  if (flags_.relay) sending.relay = tree_sync::Relay::yes;
  if (flags_.force || earlier_code_) sending.foreign = tree_sync::Foreign::overwrite;
  bool is_code_sent = false;
  const auto next_push = [&]() -> tree_sync::Pushing* {
    if (!wants_sync() || is_code_sent) return nullptr;
    push.emplace(console, remote.hosts(), *tree, destinations, sending);
    return &push->steps();
  };
  const auto goes_on = [&](const std::vector<Checked>& checked, std::string_view doing) {
    return judge(checked, doing, report, remote);
  };
  SuppliedHosts hosts;
  try {
    Needs needs = this->needs(folders);
    if (needs.trainer && needs.environment_comes_later) {
      next_push();
      if (!send_before_trainer(needs, report, console, remote, *push)) return false;
      is_code_sent = true;
    }
    hosts = check_and_supply(console, remote, needs, goes_on, next_push);
  } catch (const UsageError&) {  // about the experiment
    throw;
  } catch (const std::exception&) {  // this machine's disk is full, for one
    discard_run_folders(remote, plan_.run_id);
    console.note("nothing was started");
    throw;
  }
  if (!hosts.went_on) return false;
  note_log_out(hosts.checked, console);
  if (!launcher_->complete(console, flags_, targets, hosts.checked, plan_)) return false;
  take_identities(hosts.checked, plan_);
  record_plan(plan_, hosts.checked, record_);
  if (const tree_sync::Listing* listing = push ? push->steps().listing() : nullptr) {
    record_.code.fingerprint = listing->fingerprint;
    listing_ = *listing->text;
  }
  return !push || is_code_sent || report.all_well(push->finish(remote), "sending the code");
}

/// Without the edits: they may hold what was removed from the files before these were sent.
std::string RunAction::record_for_hosts() const {
  RunRecord copy = record_;
  if (!copy.code.diff.empty())
    copy.code.diff_left_out = "they are in the record on " + record_.launcher;
  copy.code.diff.clear();
  return to_text(copy);
}

/// Before the killfile: what is started is recorded whole.
void RunAction::keep_record(const std::vector<std::string>& command_line) {
  const killfiles::Killfile head = new_killfile(plan_.run_id, command_line);
  record_.created = head.created;
  record_.launcher = head.launcher;
  record_.command_line = command_line;
  record_.flags = flags_to_record(command_->given());
  if (repeats()) record_.flags = earlier_->flags_of_rerun(std::move(*record_.flags));
  try {
    if (listing_) write_listing(plan_.run_id, *listing_);
    write_record(record_);
  } catch (const std::exception&) {
    forget_record(plan_.run_id);
    throw;
  }
}

/// Whether the run to go on from has ended and left what it takes; the exit code.
int RunAction::look_back(Invocation& invocation, EarlierOutputs& outputs, RunReport& report) const {
  Console& console = invocation.console;
  if (!require_ended(console, earlier_->record().run_id, flags_.hosts, invocation.settings.users()))
    return kInterrupted;
  if (outputs.are_there(report)) return kAllWell;
  console.note("nothing was started");
  return outputs.interrupted() ? kInterrupted : kNotDone;
}

/// The earlier outputs come to the hosts, and then the run is written down: a later one may go on
/// from it only if its outputs are whole. If that fails, nothing of it is left.
bool RunAction::bring(EarlierOutputs& outputs, ssh::Remote& remote, RunReport& report,
                      Console& console, const std::vector<std::string>& command_line) {
  const auto forget = [&] {
    std::error_code gone;
    std::filesystem::remove(killfiles::path_of(killfile_folder(), plan_.run_id), gone);
    discard_run_folders(remote, plan_.run_id);
    console.note("nothing was started");
  };
  try {
    if (outputs.bring(remote, report)) {
      keep_record(command_line);
      return true;
    }
  } catch (const std::exception&) {  // this machine's disk is full, for one
    forget();
    throw;
  }
  forget();
  return false;
}

int RunAction::run(Invocation& invocation) {
  Console& console = invocation.console;
  take_up(invocation);
  apply_settings(invocation.settings.all(), flags_);
  launcher_ = &choose_launcher(launchers_, flags_);
  refuse_others_flags();
  Targets targets = launcher_->reach(flags_, invocation.settings.all());
  if (earlier_) earlier_->keep_processes(targets);
  find_files();
  make_plan(invocation, targets);
  if (sends_to_code_folder()) require_code_tree();
  if (!repeats()) require_program(targets);
  std::vector<RunData> data = list_data(console, flags_.data);
  if (flags_.dry_run) {
    RunPlan shown = plan_;
    shown.variables = without_values(plan_.variables);
    const std::string code =
        repeats() ? "the code of " + plan_.rerun_of : current_folder().string();
    show_plan(console, shown, *launcher_,
              {flags_.listener, flags_.nproc_per_node, wants_sync() ? code : ""});
    return kAllWell;
  }

  RunReport report(console, plan_.run_id);
  if (repeats() && !gather_code(console, targets)) return report.end(kInterrupted);
  std::optional<EarlierOutputs> outputs;
  if (resumes()) {
    outputs.emplace(console, earlier_->record(), plan_, targets.connect);
    const int looked = look_back(invocation, *outputs, report);
    if (looked != kAllWell) return report.end(looked);
  }
  const auto remote = ssh::make_fleet(targets.hosts, targets.connect);
  const bool is_ready = bring_data(report, console, *remote, targets, data) &&
                        make_environment_ready(report, console, *remote) &&
                        make_ready(report, console, *remote, targets);
  if (!is_ready || remote->interrupted()) {
    discard_run_folders(*remote, plan_.run_id);
    console.note("nothing was started");
    return report.end(remote->interrupted() ? kInterrupted : kNotDone);
  }
  earlier_code_.reset();  // it was sent
  const std::vector<std::string> command_line = without_values(invocation.command_line);
  const killfiles::Killfile killfile = write_or_discard(console, *remote, plan_.run_id, [&] {
    if (!resumes()) {
      keep_record(command_line);
      return write_killfile(plan_, command_line, targets.connect);
    }
    const host::Descriptor lock = lock_resuming();
    require_not_resumed(earlier_->record().run_id);
    return write_killfile(plan_, command_line, targets.connect);
  });
  if (outputs && !bring(*outputs, *remote, report, console, command_line))
    return report.end(remote->interrupted() || outputs->interrupted() ? kInterrupted : kNotDone);
  return start_run(console, *remote, *launcher_, plan_, killfile, targets.connect,
                   follow(console, invocation.settings.all()), record_for_hosts(), report);
}

}  // namespace

std::unique_ptr<Action> make_run() {
  return std::make_unique<RunAction>(Start::anew);
}

std::unique_ptr<Action> make_rerun() {
  return std::make_unique<RunAction>(Start::rerun);
}

}  // namespace dtool::cli
