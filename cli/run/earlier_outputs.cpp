// SPDX-License-Identifier: MIT
// The outputs of an earlier run, and their way to other hosts.
#include "cli/run/earlier_run.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/host_output.h"
#include "cli/ready/tree_push.h"
#include "ssh/machine/files.h"
#include "ssh/quote.h"
#include "ssh/script.h"
#include "sync/look.h"
#include "sync/pull.h"
#include "sync/tree.h"

namespace dtool::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kForLook{60};
constexpr std::chrono::minutes kForMove{10};

/// Exit codes of the script that looks.
constexpr int kNoFolder = 3;
constexpr int kNoCheckpoint = 4;

/// Defined before: output (path), with_checkpoint (yes or no).
constexpr const char* kLook = R"(
[ -d "$output" ] || exit 3
[ "$with_checkpoint" = yes ] || exit 0
for file in "$output"/checkpoints/step_*.safetensors; do [ ! -s "$file" ] || exit 0; done
exit 4
)";

/// Defined before: from (the folder that was sent), to (path).
constexpr const char* kMove = R"(
set -o pipefail
[ -d "$from" ] || exit 0  # there was no file
cd -- "$from" || exit 1
find . -type d -print0 | (cd -- "$to" && xargs -0 mkdir -p --) || exit 1
find . ! -type d -print0 | while IFS= read -r -d '' file; do mv -fT -- "$file" "$to/$file" || exit 1; done || exit 1
cd / && rm -rf -- "$from"
)";
constexpr const char* kRemove = R"(
rm -rf -- "$from"
)";

/// Defined before: outputs (path), mark (of the earlier run's logs), id (of the earlier machine),
/// tree (path of the run's own), has_other_code (yes or no). Machines that share their home folder
/// share a tree, and one of them kept what was written there.
constexpr const char* kTakeUp = R"(
kept=$outputs/machine$id$mark.written
for each in "$outputs"/machine*"$mark.written"; do
  [ -d "$kept" ] && break
  place=${each##*/machine}
  case ${place%"$mark.written"} in *[!0-9]*) ;; *) kept=$each ;; esac
done
[ -d "$kept" ] && [ -d "$tree" ] || exit 0
cd -- "$kept" || exit 1
set -o pipefail
find . -mindepth 1 -type d -print0 | while IFS= read -r -d '' folder; do
  [ ! -L "$tree/$folder" ] || rm -f -- "$tree/$folder"  # it led to what the code folder has
  mkdir -p -- "$tree/$folder" || exit 1
done || exit 1
find . ! -type d -print0 | while IFS= read -r -d '' file; do
  [ "$has_other_code" = no ] || [ ! -f "$tree/$file" ] || continue
  # Not into the file: it may be another name of one that others use.
  rm -f -- "$tree/$file" && cp -dp -- "$file" "$tree/$file" || exit 1
done
)";

/// Beside the outputs, so that moving them is renaming. Each machine has its own: hosts may share
/// the folder, and what they are sent may differ.
std::string draft_of(const RunPlan& plan, const MachinePlan& machine) {
  return fmt::format("{}/.dtool_brought{}", output_folder(plan, machine), machine.id);
}

fs::path part_folder(const fs::path& store, const EarlierPart& part) {
  return store / fmt::format("machine{}", part.from);
}

/// All files of a folder. Not as code is read: git's ignored files are outputs, too.
tree_sync::Tree whole_tree(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& each : fs::recursive_directory_iterator(folder)) {
    if (each.is_regular_file() || each.is_symlink())
      files.push_back(each.path().lexically_relative(folder).string());
  }
  return tree_sync::tree_of(folder, std::move(files));
}

std::size_t place_of(const ssh::Remote& remote, const ssh::Host& host) {
  return static_cast<std::size_t>(std::ranges::find(remote.hosts(), host) - remote.hosts().begin());
}

/// How many of the first machines go on with outputs of their own.
std::size_t count_with_outputs(const RunPlan& plan) {
  const bool is_shared = plan.machines.front().leader == Leader::other;
  return plan.program.empty() || is_shared ? 1 : plan.machines.size();
}

/// The place of the earlier machine.
std::size_t source_of(std::size_t machine, const RunRecord& earlier, OutputsOf outputs_of) {
  return outputs_of == OutputsOf::same_machine && machine < earlier.machines.size() ? machine : 0;
}

}  // namespace

std::vector<EarlierPart> earlier_parts(const RunRecord& earlier, const RunPlan& plan,
                                       OutputsOf outputs_of) {
  std::vector<EarlierPart> parts;
  for (std::size_t i = 0; i < count_with_outputs(plan); ++i) {
    const std::size_t from = source_of(i, earlier, outputs_of);
    auto part = std::ranges::find(parts, from, &EarlierPart::from);
    if (part == parts.end()) part = parts.insert(parts.end(), EarlierPart{from, {}});
    const RecordedMachine& source = earlier.machines[from];
    const bool is_same = source.host == ssh::to_string(plan.machines[i].host) &&
                         source.output_folder == output_folder(plan, plan.machines[i]);
    if (!is_same) part->to.push_back(i);
  }
  return parts;
}

EarlierOutputs::EarlierOutputs(Console& console, const RunRecord& earlier, const RunPlan& plan,
                               OutputsOf outputs_of, const ssh::ConnectOptions& connect)
    : console_(console),
      earlier_(earlier),
      plan_(plan),
      outputs_of_(outputs_of),
      parts_(earlier_parts(earlier, plan, outputs_of)) {
  std::vector<ssh::Host> hosts;
  for (const EarlierPart& part : parts_)
    hosts.push_back(ssh::parse_host(earlier.machines[part.from].host));
  remote_ = ssh::make_fleet(hosts, connect);
}

bool EarlierOutputs::are_there(RunReport& report) {
  std::vector<ssh::Task> tasks;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::string& output = earlier_.machines[parts_[i].from].output_folder;
    const bool wants_checkpoint = plan_.program.empty();
    tasks.push_back(
        {i, ssh::bash(fmt::format("output={}\nwith_checkpoint={}\n{}", ssh::quote_path(output),
                                  wants_checkpoint ? "yes" : "no", kLook))});
  }
  AnswerCount progress(console_, remote_->hosts(), "looked at");
  ssh::RunOptions options;
  options.timeout = kForLook;
  auto results = remote_->run(std::move(tasks), progress, options);
  console_.progress("");
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::string& output = earlier_.machines[parts_[i].from].output_folder;
    if (results[i].exit_code == kNoFolder)
      results[i].error = fmt::format("there is no output folder {}", output);
    if (results[i].exit_code == kNoCheckpoint)
      results[i].error = fmt::format("there is no checkpoint in {}/checkpoints", output);
  }
  if (!report.all_well(results, "looking for the outputs of " + earlier_.run_id)) return false;
  if (plan_.program.empty()) return true;
  std::vector<tree_sync::SourceQuestion> questions;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const RecordedMachine& machine = earlier_.machines[parts_[i].from];
    if (!machine.tree.empty()) questions.push_back({i, {machine.output_folder}, earlier_.run_id});
  }
  results.clear();
  for (const auto& kept : tree_sync::look_at_sources(*remote_, questions, progress, kForMove))
    results.push_back(kept.result);
  console_.progress("");
  return report.all_well(results, "keeping what " + earlier_.run_id + " wrote beside its outputs");
}

std::vector<ssh::Task> EarlierOutputs::tasks_at_places(const ssh::Remote& remote,
                                                       const char* text) const {
  std::vector<ssh::Task> tasks;
  for (const EarlierPart& part : parts_) {
    for (const std::size_t i : part.to) {
      const MachinePlan& machine = plan_.machines[i];
      tasks.push_back(
          {place_of(remote, machine.host),
           ssh::bash(fmt::format("from={}\nto={}\n{}", ssh::quote_path(draft_of(plan_, machine)),
                                 ssh::quote_path(output_folder(plan_, machine)), text))});
    }
  }
  return tasks;
}

bool EarlierOutputs::bring_over(const fs::path& folder, ssh::Remote& remote, RunReport& report) {
  std::vector<tree_sync::Pull> pulls;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].to.empty()) continue;
    const fs::path own = part_folder(folder, parts_[i]);
    fs::create_directories(own);
    pulls.push_back({i, {earlier_.machines[parts_[i].from].output_folder}, own});
  }
  BringingProgress progress(console_, remote_->hosts(), "gave their outputs");
  std::vector<ssh::HostResult> fetched;
  for (const tree_sync::Pulled& each : tree_sync::pull(*remote_, pulls, progress))
    fetched.push_back(each.result);
  console_.progress("");
  if (!report.all_well(fetched, "fetching the outputs of " + earlier_.run_id)) return false;
  for (const EarlierPart& part : parts_) {
    if (part.to.empty()) continue;
    const tree_sync::Tree tree = whole_tree(part_folder(folder, part));
    std::vector<tree_sync::Destination> destinations;
    for (const std::size_t i : part.to)
      destinations.push_back(
          {place_of(remote, plan_.machines[i].host), draft_of(plan_, plan_.machines[i])});
    const auto sent = send_tree(
        console_, remote, tree, destinations,
        {"the earlier outputs", tree_sync::Relay::where_it_pays, tree_sync::Foreign::overwrite});
    if (!report.all_well(sent, "sending the outputs of " + earlier_.run_id) || remote.interrupted())
      return false;
  }
  return true;
}

bool EarlierOutputs::take_up_written(ssh::Remote& remote, RunReport& report,
                                     bool has_other_code) const {
  const std::string mark = earlier_.chain.empty() ? "" : "." + earlier_.run_id;
  std::vector<ssh::Task> tasks;
  for (std::size_t i = 0; i < count_with_outputs(plan_) && !plan_.program.empty(); ++i) {
    const MachinePlan& machine = plan_.machines[i];
    if (machine.tree.empty()) continue;
    const int id = earlier_.machines[source_of(i, earlier_, outputs_of_)].id;
    tasks.push_back({place_of(remote, machine.host),
                     ssh::bash(fmt::format(
                         "outputs={}\nmark={}\nid={}\ntree={}\nhas_other_code={}\n{}",
                         ssh::quote_path(output_folder(plan_, machine)), ssh::quote(mark), id,
                         ssh::quote_path(machine.tree), has_other_code ? "yes" : "no", kTakeUp))});
  }
  ssh::Events nobody;
  ssh::RunOptions options;
  options.timeout = kForMove;
  return report.all_well(remote.run(std::move(tasks), nobody, options),
                         "putting back what " + earlier_.run_id + " wrote beside its outputs") &&
         !remote.interrupted();
}

bool EarlierOutputs::bring(ssh::Remote& remote, RunReport& report, bool has_other_code) {
  return put_into_place(remote, report) && take_up_written(remote, report, has_other_code);
}

bool EarlierOutputs::put_into_place(ssh::Remote& remote, RunReport& report) {
  if (std::ranges::all_of(parts_, [](const EarlierPart& each) { return each.to.empty(); }))
    return true;
  const BroughtFolder store(plan_.run_id);
  ssh::Events nobody;
  ssh::RunOptions options;
  options.timeout = kForMove;
  if (bring_over(store.path(), remote, report)) {
    const auto moved = remote.run(tasks_at_places(remote, kMove), nobody, options);
    return report.all_well(moved, "putting the outputs of " + earlier_.run_id + " into place") &&
           !remote.interrupted();
  }
  if (!remote.interrupted()) remote.run(tasks_at_places(remote, kRemove), nobody, options);
  return false;
}

namespace {

namespace fs = std::filesystem;

fs::path all() {
  return ssh::home_folder() / ".dtool" / "brought";
}

/// Those of a dtool that was killed.
void remove_forgotten() {
  std::error_code ignored;
  for (const auto& each : fs::directory_iterator(all(), ignored)) {
    if (each.last_write_time(ignored) < fs::file_time_type::clock::now() - std::chrono::days(2))
      fs::remove_all(each.path(), ignored);
  }
}

}  // namespace

BroughtFolder::BroughtFolder(const std::string& name) : path_(all() / name) {
  remove_forgotten();
  fs::create_directories(path_);
  fs::permissions(all(), fs::perms::owner_all);
}

BroughtFolder::~BroughtFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace dtool::cli
