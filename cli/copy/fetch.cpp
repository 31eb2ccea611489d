// SPDX-License-Identifier: MIT
// `dtool fetch`: the outputs of a run's machines to this machine, a folder a machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/copy/fetch_plan.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/options.h"
#include "cli/record/recorded.h"
#include "sync/look.h"
#include "sync/pull.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

/// Outputs come into a folder that is new, or has outputs of the same run.
void require_own_folder(const fs::path& folder, const std::string& run_id) {
  const auto other = tree_sync::fetched_run(folder);
  std::error_code fault;
  if (other == run_id || !fs::exists(folder) || fs::is_empty(folder, fault) ||
      tree_sync::has_only_half_a_mark(folder, run_id))
    return;
  const std::string hint = fmt::format("name another folder: dtool fetch {} {}", run_id,
                                       (folder.parent_path().parent_path() / run_id).string());
  if (other)
    throw UsageError(fmt::format("{} has the outputs of {}", folder.string(), *other), hint);
  throw UsageError(fmt::format("{} is there, and dtool fetched nothing into it", folder.string()),
                   hint);
}

/// One machine on its way.
struct Part {
  std::size_t host = 0;  ///< its place in the killfile
  int id = 0;
  const killfiles::Machine* machine = nullptr;
  fs::path folder;  ///< the folder on this machine
  std::vector<tree_sync::Source> sources;
  ssh::HostResult result = {};
  tree_sync::Sent sent = {};
  std::vector<std::string> grown = {};    ///< files that are here as they were when they were seen
  std::vector<std::string> skipped = {};  ///< the names of what does not come (Pulled)
  bool broke_off = false;
  bool is_fetched = false;               ///< something was asked of rsync
  std::string stranger = {};             ///< the text that stranger_at() returns
  std::optional<std::size_t> same = {};  ///< the part that has the same folder on the hosts
};

/// A row a machine with a bar, and what an interrupt means.
class FetchProgress : public ssh::Events {
 public:
  FetchProgress(Console& console, const std::vector<Part>& parts) : console_(console) {
    for (const Part& part : parts) rows_[part.host].name = fmt::format("machine{}", part.id);
  }

  void on_progress(std::size_t host, const ssh::Transferred& progress) override {
    rows_[host].progress = progress;
    rows_[host].is_running = true;
    show();
  }
  void on_result(std::size_t host, const ssh::HostResult&) override {
    rows_[host].is_running = false;
    show();
  }
  void on_interrupt(const std::vector<std::size_t>&) override {
    console_.note("interrupted: fetched files stay, and the same command continues from there");
  }

 private:
  struct Row {
    std::string name;
    ssh::Transferred progress;
    bool is_running = false;
  };

  void show() {
    std::vector<std::string> lines;
    for (const auto& [host, row] : rows_) {
      if (!row.is_running) continue;
      lines.push_back(fmt::format("{:<10} {}  {:>8}", row.name, bar(row.progress.fraction()),
                                  size_text(row.progress.bytes)));
    }
    console_.live(lines);
  }

  Console& console_;
  std::map<std::size_t, Row> rows_;
};

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw UsageError(
        fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
}

/// A relative path if it is inside the current folder; elsewhere a path up and down again is hard
/// to read.
fs::path as_seen_from_here(const fs::path& folder) {
  const fs::path from_here = folder.lexically_proximate(fs::current_path());
  return *from_here.begin() == ".." ? folder : from_here;
}

class FetchAction : public Action {
 public:
  void add_options(Options& command) override {
    command.add_option("RUN", run_, "a run's id or a part of it; last, last-1 (the newest run)");
    command.add_option("DEST", destination_, "a folder on this machine (the run's id)");
    command.add_option("--only PATTERN", only_, "files to fetch, such as '*.jsonl'; repeatable");
    command.add_option("-m,--machine I", machines_,
                       "only the machine with this id or host; repeatable");
    command.add_whole_number("--timeout SECONDS", timeout_,
                             "seconds after which a machine that sends nothing is given up (300)",
                             {1, 24 * 3600});
    command
        .add_option("--max_gb N", max_gb_,
                    "gigabytes that each machine may send; no more than the disk has room for")
        .check(must_be_from(0.000001, 1e6));
    add_connect_options(command, hosts_);
  }

  int run(Invocation& invocation) override {
    Console& console = invocation.console;
    const killfiles::Killfile killfile = recorded_run(run_);
    const Targets targets = recorded_targets(killfile, hosts_, invocation.settings.users());
    std::vector<Part> parts = plan(killfile, targets);
    if (run_.empty()) console.note(fmt::format("the newest run is {}", killfile.run_id));
    const auto remote = invocation.reach(targets.hosts, targets.connect);
    look(console, *remote, killfile.run_id, parts);
    if (!remote->interrupted()) fetch(console, *remote, killfile.run_id, parts);

    const std::vector<ssh::HostResult> results = results_of(parts);
    const int exit_code = exit_code_of(results, *remote);
    if (console.json()) {
      nlohmann::json machines = nlohmann::json::array();
      for (const Part& part : parts) machines.push_back(to_json(part, parts));
      console.document(
          {{"run_id", killfile.run_id}, {"exit_code", exit_code}, {"machines", machines}});
    }
    tell(console, parts);
    report_failures(console, results, fmt::format("fetching {}", killfile.run_id));
    return exit_code;
  }

 private:
  std::vector<Part> plan(const killfiles::Killfile& killfile, const Targets& targets) const {
    const fs::path destination =
        fs::absolute(destination_.empty() ? killfile.run_id : destination_).lexically_normal();
    if (destination_ == "last" || destination_.starts_with("last-"))
      throw UsageError("fetch takes one run, and a folder",
                       "the folder " + destination_ + " is ./" + destination_);
    if (fs::exists(destination) && !fs::is_directory(destination))
      throw UsageError(fmt::format("{} is there, but is not a folder", destination.string()));
    std::vector<Part> parts;
    for (const std::size_t i : choose_machines(killfile, machines_)) {
      const killfiles::Machine& machine = killfile.machines[i];
      Part part{i, machine.id, &machine, destination / fmt::format("machine{}", machine.id),
                sources_of(machine, only_)};
      part.result.host = targets.hosts[i];
      if (targets.hosts[i].is_local) require_apart(part.sources.front(), part.folder);
      require_no_strangers(part.folder);
      require_own_folder(part.folder, killfile.run_id);
      parts.push_back(std::move(part));
    }
    return parts;
  }

  /// Whether each source is there. Machines that share their output folder are fetched once.
  static void look(Console& console, ssh::Remote& remote, const std::string& run_id,
                   std::vector<Part>& parts) {
    std::vector<tree_sync::SourceQuestion> looks;
    for (const Part& part : parts) looks.push_back({part.host, part.sources.front(), run_id});
    AnswerCount progress(console, remote.hosts(), "looked at");
    // A host may copy what was written to another disk.
    auto looked = tree_sync::look_at_sources(remote, looks, progress, std::chrono::minutes(10));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Part& part = parts[i];
      part.result = std::move(looked[i].result);
      if (!part.result.ok()) continue;
      part.stranger = stranger_at(*part.machine, looked[i].host, part.result);
      if (part.sources.front().file.empty()) part.same = looked[i].same_as;
    }
  }

  /// Round by round, since a host does one thing at a time: output folders, then logs elsewhere.
  void fetch(Console& console, ssh::Remote& remote, const std::string& run_id,
             std::vector<Part>& parts) const {
    const fs::path destination = parts.front().folder.parent_path();
    const bool was_there = fs::exists(destination);
    for (std::size_t round = 0; round < 2; ++round) {
      std::vector<tree_sync::Pull> pulls;
      std::vector<Part*> asked;
      for (Part& part : parts) {
        const bool is_due = part.result.ok() && round < part.sources.size();
        if (!is_due || (part.same && part.sources[round].file.empty())) continue;
        make_folder(part.folder);
        tree_sync::mark_fetched(part.folder, run_id);
        pulls.push_back({part.host, part.sources[round], part.folder,
                         std::chrono::seconds(timeout_), still_allowed(max_gb_, part.sent.bytes)});
        asked.push_back(&part);
      }
      FetchProgress progress(console, parts);
      std::vector<tree_sync::Pulled> pulled = tree_sync::pull(remote, pulls, progress);
      console.live({});
      for (std::size_t i = 0; i < pulled.size(); ++i) {
        asked[i]->result = std::move(pulled[i].result);
        if (asked[i]->result.failure == ssh::Failure::timed_out)
          asked[i]->result.error += " (--timeout)";
        asked[i]->sent.files += pulled[i].sent.files;
        asked[i]->sent.bytes += pulled[i].sent.bytes;
        asked[i]->grown.insert(asked[i]->grown.end(), pulled[i].grown.begin(),
                               pulled[i].grown.end());
        asked[i]->skipped.insert(asked[i]->skipped.end(), pulled[i].skipped.begin(),
                                 pulled[i].skipped.end());
        asked[i]->broke_off = asked[i]->broke_off || !pulled[i].is_complete;
        asked[i]->is_fetched = true;
      }
    }
    for (const Part& part : parts) tree_sync::remove_if_only_marked(part.folder);
    std::error_code not_empty;
    if (!was_there) fs::remove(destination, not_empty);
  }

  void tell(Console& console, const std::vector<Part>& parts) const {
    const std::string nothing =
        only_.empty() ? "there is no file to fetch"
                      : fmt::format("no file matches --only {}", fmt::join(only_, " or "));
    for (const Part& part : parts) {
      const std::string name = console.styled_error(
          Style::bold, fmt::format("machine{} ({})", part.id, ssh::to_string(part.result.host)));
      if (!part.stranger.empty()) console.note(fmt::format("{}: {}", name, part.stranger));
      if (part.same && part.result.ok()) {
        console.note(fmt::format("{}: the same folder as machine{}'s", name, parts[*part.same].id));
      } else if (part.is_fetched && part.result.ok() && !fs::exists(part.folder)) {
        console.note(fmt::format("{}: {}", name, nothing));
      } else if (part.is_fetched) {
        console.note(fmt::format("{}: {}, {} into {}{}", name, counted(part.sent.files, "file"),
                                 size_text(part.sent.bytes),
                                 as_seen_from_here(part.folder).string(),
                                 part.broke_off     ? ", and then it broke off"
                                 : part.result.ok() ? ""
                                                    : ", but not all"));
      }
      if (!part.skipped.empty())
        console.note(fmt::format("{}: {}", name, skipped_text(part.skipped)));
      if (!part.grown.empty()) console.note(fmt::format("{}: {}", name, grown_text(part.grown)));
    }
  }

  static nlohmann::json to_json(const Part& part, const std::vector<Part>& parts) {
    nlohmann::json json = cli::to_json(part.result);
    json.update({{"id", part.id},
                 {"folder", part.folder.string()},
                 {"files", part.sent.files},
                 {"bytes", part.sent.bytes}});
    if (part.same) json["same_as"] = parts[*part.same].id;
    return json;
  }

  HostOptions hosts_;
  std::string run_;
  std::string destination_;
  std::vector<std::string> only_;
  std::vector<std::string> machines_;
  int timeout_ = 300;
  std::optional<double> max_gb_;
};

}  // namespace

std::unique_ptr<Action> make_fetch() {
  return std::make_unique<FetchAction>();
}

}  // namespace dtool::cli
