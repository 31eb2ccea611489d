// SPDX-License-Identifier: MIT
// The code of an earlier run, put together again.
#include "cli/run/earlier_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "cli/console.h"
#include "cli/host_output.h"
#include "cli/record/record.h"
#include "ssh/host_error.h"
#include "sync/contents.h"
#include "sync/look.h"
#include "sync/pull.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kForLookAtTree{60};
constexpr std::size_t kNamedFiles = 5;

}  // namespace

std::vector<std::string> changed_since(const tree_sync::Tree& tree,
                                       const tree_sync::Listing& before) {
  const auto now = list_tree(tree, tree_sync::read_contents(tree));
  std::unordered_map<std::string_view, std::string_view> contents;
  for (const tree_sync::Entry& each : before.entries) contents[each.name] = each.content;
  const tree_sync::Delta delta = find_delta(before.entries, now.entries);
  std::vector<std::string> names(delta.removed.begin(), delta.removed.end());
  for (const tree_sync::Entry& each : delta.changed) {
    const auto known = contents.find(each.name);
    const bool is_same =
        known != contents.end() && !each.content.empty() && known->second == each.content;
    if (!each.is_folder() && !is_same) names.emplace_back(each.name);
  }
  std::ranges::sort(names);
  return names;
}

std::string named_first(const std::vector<std::string>& names) {
  const std::vector<std::string> first(
      names.begin(), names.begin() + static_cast<long>(std::min(names.size(), kNamedFiles)));
  return without_controls(
      fmt::format("{}{}", fmt::join(first, ", "), names.size() > kNamedFiles ? ", …" : ""));
}

EarlierCode::EarlierCode(Console& console, const RunRecord& earlier, Start start,
                         const ssh::ConnectOptions& connect)
    : console_(console), earlier_(earlier), start_(start) {
  const auto text = read_listing(earlier.run_id);
  const bool is_its_own =
      text && tree_sync::make_listing(*text).fingerprint == earlier.code.fingerprint;
  if (!is_its_own)
    throw UsageError(fmt::format("{} cannot be {}: the list of its code's files in {} is {}",
                                 earlier.run_id, verb_of(start), record_folder().string(),
                                 text ? "not the one that was sent" : "gone or damaged"));
  listing_ = *text;
  std::vector<ssh::Host> hosts;
  for (const RecordedMachine& each : earlier.machines) {
    const ssh::Host host = ssh::parse_host(each.host);
    if (each.tree.empty() || std::ranges::count(hosts, host) > 0) continue;
    hosts.push_back(host);
    trees_.push_back(each.tree);
  }
  remote_ = ssh::make_fleet(std::move(hosts), connect);
}

/// Tells which files `place` and all places before it lack.
void EarlierCode::note_lack(const std::string& place) {
  const std::vector<std::string>& missing = restored_->missing();
  if (missing.empty()) return;
  lacks_.push_back(fmt::format("{}: {} {} not as {} sent: {}", place,
                               counted(missing.size(), "file"), missing.size() == 1 ? "is" : "are",
                               missing.size() == 1 ? "it was" : "they were", named_first(missing)));
}

/// False: interrupted.
bool EarlierCode::look_here() {
  std::error_code unseen;
  std::vector<fs::path> folders = {earlier_.code.folder};
  const fs::path here = fs::current_path(unseen);
  if (!unseen && here != folders.front()) folders.push_back(here);
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder, unseen)) {
      lacks_.push_back(fmt::format("there is no folder {}", folder.string()));
      continue;
    }
    restored_->copy_from(folder);
    restored_->prove();
    note_lack((folder == earlier_.code.folder ? "" : "the current folder ") + folder.string());
    if (remote_->interrupted()) return false;
  }
  return true;
}

/// False: interrupted.
bool EarlierCode::look_on(std::size_t host) {
  const std::string name = ssh::to_string(remote_->hosts()[host]);
  BringingProgress progress(console_, remote_->hosts(), "gave its code");
  const ssh::HostResult looked =
      tree_sync::look_at_sources(*remote_, {{host, {trees_[host]}}}, progress, kForLookAtTree)
          .front()
          .result;
  if (remote_->interrupted()) return false;
  if (!looked.ok()) {
    lacks_.push_back(fmt::format("{}: {}", name, looked.error));
    return true;
  }
  tree_sync::Pull pull{host, {trees_[host]}, restored_->root()};
  pull.source.files = restored_->missing();
  const ssh::HostResult pulled =
      tree_sync::pull(*remote_, {std::move(pull)}, progress).front().result;
  console_.progress("");
  if (remote_->interrupted()) return false;
  restored_->prove();
  // rsync also says so where the host has only some of the files.
  constexpr int kPartial = 23;
  if (pulled.ok() || pulled.exit_code == kPartial) {
    note_lack(name);
  } else {
    lacks_.push_back(fmt::format("{}: {}", name, pulled.error));
  }
  return true;
}

UsageError EarlierCode::fault() const {
  const std::string& commit = earlier_.code.commit;
  const bool is_in_place = trees_.empty();
  std::string hint =
      is_in_place ? "it ran in the code folder itself, and no copy of the code was kept"
                  : "a run's copy of its code goes with dtool kill --delete and list --prune";
  if (!commit.empty())
    hint += fmt::format(
        "; with a checkout of commit {}{} as the current folder it is looked for there", commit,
        earlier_.code.diff.empty()
            ? ""
            : fmt::format(", with the edits of dtool show {} --patch,", earlier_.run_id));
  if (start_ == Start::resumed) hint = "--resync sends the folder as it is now; " + hint;
  return UsageError(fmt::format("the code of {} is nowhere as it was sent: {}", earlier_.run_id,
                                fmt::join(lacks_, "; ")),
                    hint);
}

bool EarlierCode::gather() {
  folder_.emplace(fmt::format("{}.{}", earlier_.run_id, ::getpid()));
  try {
    restored_.emplace(tree_sync::make_listing(listing_), folder_->path());
  } catch (const std::runtime_error& error) {
    throw UsageError(
        fmt::format("{} cannot be {}: {}", earlier_.run_id, verb_of(start_), error.what()));
  }
  if (!look_here()) return false;
  for (std::size_t i = 0; i < trees_.size() && !restored_->missing().empty(); ++i) {
    if (!look_on(i)) return false;
  }
  if (!restored_->missing().empty()) throw fault();
  tree_ = restored_->finish();
  return !remote_->interrupted();
}

std::string EarlierCode::folder_on_hosts() const {
  constexpr std::size_t kEnough = 32;
  return "~/.dtool/code/" + earlier_.code.fingerprint.substr(0, kEnough);
}

}  // namespace dtool::cli
