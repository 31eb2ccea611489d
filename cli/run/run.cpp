// SPDX-License-Identifier: MIT
// `dtool run` and `dtool rerun`: plans the run, makes the hosts ready, records the run, starts one
// screen session per machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "cli/action.h"
#include "cli/copy/copy_to_hosts.h"
#include "cli/engines/engine.h"
#include "cli/plan/code_tree.h"
#include "cli/plan/plan.h"
#include "cli/plan/program_words.h"
#include "cli/record/record.h"
#include "cli/record/recorded.h"
#include "cli/run/earlier_run.h"
#include "cli/run/run_report.h"
#include "cli/run/steps.h"
#include "ssh/fanout/fleet.h"

namespace dtool::cli {
namespace {

/// A word of each engine, with `between` in between.
std::string joined(const std::vector<const Engine*>& engines,
                   std::string_view (Engine::*word)() const, std::string_view between) {
  std::vector<std::string_view> words;
  for (const Engine* engine : engines) words.push_back((engine->*word)());
  return fmt::format("{}", fmt::join(words, between));
}

class RunAction : public Action {
 public:
  explicit RunAction(Start start) { run_.start = start; }

  void add_options(Options& command) override {
    command_.emplace(command);
    run_.start == Start::rerun ? add_rerun_flags(command, run_.flags, engine_names())
                               : add_run_flags(command, run_.flags, engine_names());
    for (const auto& engine : engines_) {
      for (const Option option : engine->add_options(command))
        own_options_[option].push_back(engine.get());
    }
    for (const auto& [option, takers] : own_options_)
      option.group(joined(takers, &Engine::title, " and "));
  }

  int run(Invocation& invocation) override {
    Console& console = invocation.console;
    take_up_earlier(run_, *command_, invocation);
    apply_settings(invocation.settings.all(), run_.flags);
    run_.engine = &choose_engine(engines_, run_.flags);
    refuse_others_flags();
    Targets targets = run_.engine->reach(run_.flags, invocation.settings.all());
    if (run_.earlier) run_.earlier->keep_processes(targets);
    find_files(run_);
    make_plan(run_, invocation, targets);
    if (run_.resumes()) keep_earlier_code(run_, console);
    if (run_.sends_to_code_folder()) require_code_tree();
    if (!run_.earlier) check_program_words(run_.plan);
    if (run_.sends_to_code_folder()) require_script(run_.plan, run_.flags.excludes);
    if (!run_.repeats()) require_program(run_, targets);
    for (const std::string& note : notes_on_words(run_.plan, run_.flags)) console.note(note);
    std::vector<RunData> data = list_data(console, run_.flags.data);
    if (run_.flags.dry_run) {
      note_start(run_.plan, without_values(invocation.command_line));
      require_experiment(run_, console);
      RunPlan shown = run_.plan;
      shown.variables = without_values(run_.plan.variables);
      const std::string code = run_.keeps_code ? "the code of " + run_.earlier->record().run_id
                                               : current_folder().string();
      show_plan(console, shown, *run_.engine,
                {run_.flags.listener, run_.flags.nproc_per_node, run_.wants_sync() ? code : ""});
      return kAllWell;
    }

    targets.connect.silent = std::make_shared<ssh::SilentHosts>();
    RunReport report(console, run_.plan.run_id);
    if (run_.keeps_code && !gather_code(run_, console, targets.connect))
      return report.end(kInterrupted);
    std::optional<EarlierOutputs> outputs;
    if (run_.resumes()) {
      const auto outputs_of =
          run_.flags.broadcast_outputs ? OutputsOf::first_machine : OutputsOf::same_machine;
      outputs.emplace(console, run_.earlier->record(), run_.plan, outputs_of, targets.connect);
      const int looked = look_back(invocation, targets.connect, *outputs, report);
      if (looked != kAllWell) return report.end(looked);
    }
    const auto remote = invocation.reach(targets.hosts, targets.connect);
    if (!make_ready(run_, report, console, *remote, targets, data) || remote->interrupted()) {
      discard_run_folders(*remote, run_.plan.run_id, invocation.reach, targets.connect);
      console.note("nothing was started");
      return report.end(remote->interrupted() ? kInterrupted : kNotDone);
    }
    run_.earlier_code.reset();  // it was sent
    note_start(run_.plan, without_values(invocation.command_line));
    const auto killfile = write_or_discard(console, *remote, run_.plan.run_id, [&] {
      if (!run_.resumes()) {
        keep_record();
        return write_killfile(run_.plan, targets.connect);
      }
      const host::Descriptor lock = lock_resuming();
      require_not_resumed(run_.earlier->record().run_id);
      return write_killfile(run_.plan, targets.connect);
    });
    if (!killfile) return report.end(kNotDone);
    if (outputs && !bring(*outputs, *remote, report, invocation, targets.connect))
      return report.end(remote->interrupted() || outputs->interrupted() ? kInterrupted : kNotDone);
    return start_run(console, *remote, *run_.engine, run_.plan, *killfile, targets.connect,
                     follow(console, invocation.settings.all()), record_for_hosts(), report);
  }

 private:
  void refuse_others_flags() const {
    for (const auto& [option, takers] : own_options_) {
      if (option.is_given() && !std::ranges::count(takers, run_.engine))
        throw UsageError(fmt::format("{} goes with --launcher {}, and this run uses {}",
                                     option.name(), joined(takers, &Engine::name, " or "),
                                     run_.engine->name()));
    }
  }

  /// Who starts a training on this machine alone, at a terminal and without naming hosts, is there
  /// to see it.
  Follow follow(const Console& console, const Settings& settings) const {
    if (run_.flags.follow) return Follow::yes;
    // Those of an earlier run are named for the user.
    const bool names_hosts =
        run_.earlier ? !std::ranges::all_of(run_.plan.machines,
                                            [](const auto& each) { return each.host.is_local; })
                     : !run_.flags.hosts.runs_on.empty() || !run_.flags.hosts.hostfile.empty() ||
                           settings.runs_on;
    const bool is_here = run_.plan.engine == "ssh" && !names_hosts;
    const bool is_seen = console.is_terminal(To::out) && !console.json() && !console.quiet();
    return run_.plan.program.empty() && is_here && is_seen ? Follow::unasked : Follow::no;
  }

  /// Before the killfile: what is started is recorded whole.
  void keep_record() {
    static_cast<killfiles::Run&>(run_.record) = run_.plan;
    run_.record.flags = flags_to_record(command_->given());
    if (run_.repeats())
      run_.record.flags = run_.earlier->flags_of_rerun(std::move(*run_.record.flags));
    try {
      if (run_.listing) write_listing(run_.plan.run_id, *run_.listing);
      write_record(run_.record);
    } catch (const std::exception&) {
      forget_record(run_.plan.run_id);
      throw;
    }
  }

  /// Without the edits: they may hold what was removed from the files before these were sent.
  std::string record_for_hosts() const {
    RunRecord copy = run_.record;
    if (!copy.code.diff.empty())
      copy.code.diff_left_out = "they are in the record on " + run_.record.launcher;
    copy.code.diff.clear();
    return to_text(copy);
  }

  /// Whether the run to go on from has ended and left what it takes; the exit code.
  int look_back(Invocation& invocation, const ssh::ConnectOptions& connect, EarlierOutputs& outputs,
                RunReport& report) const {
    Console& console = invocation.console;
    if (!require_ended(console, run_.earlier->record().run_id, run_.flags.hosts,
                       invocation.settings.users(), connect.silent))
      return kInterrupted;
    if (outputs.are_there(report)) return kAllWell;
    console.note("nothing was started");
    return outputs.interrupted() ? kInterrupted : kNotDone;
  }

  /// The earlier outputs come to the hosts, and then the run is written down: a later one may go on
  /// from it only if its outputs are whole. If that fails, nothing of it is left.
  bool bring(EarlierOutputs& outputs, ssh::Remote& remote, RunReport& report,
             const Invocation& invocation, const ssh::ConnectOptions& connect) {
    Console& console = invocation.console;
    try {
      const bool has_other_code =
          run_.record.code.fingerprint != run_.earlier->record().code.fingerprint;
      if (outputs.bring(remote, report, has_other_code)) {
        keep_record();
        return true;
      }
    } catch (const std::exception& error) {  // this machine's disk is full, for one
      console.fail(error);
    }
    std::error_code gone;
    std::filesystem::remove(killfiles::path_of(killfile_folder(), run_.plan.run_id), gone);
    discard_run_folders(remote, run_.plan.run_id, invocation.reach, connect);
    console.note("nothing was started");
    return false;
  }

  std::vector<std::unique_ptr<Engine>> engines_ = make_engines();
  /// The options that only some engines have, with those engines.
  std::map<Option, std::vector<const Engine*>> own_options_;
  std::optional<Options> command_;
  PendingRun run_;
};

}  // namespace

std::unique_ptr<Action> make_run() {
  return std::make_unique<RunAction>(Start::anew);
}

std::unique_ptr<Action> make_rerun() {
  return std::make_unique<RunAction>(Start::rerun);
}

}  // namespace dtool::cli
