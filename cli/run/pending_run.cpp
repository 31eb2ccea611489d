// SPDX-License-Identifier: MIT
#include "cli/run/pending_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/copy/data.h"
#include "cli/plan/code_tree.h"
#include "cli/record/record_files.h"
#include "cli/terminal_text.h"
#include "ssh/quote.h"

namespace dtool::cli {
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
      {run.flags.excludes, run.flags.includes, run.flags.output_dir, run.flags.env_files});
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
