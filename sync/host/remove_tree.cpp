// SPDX-License-Identifier: MIT
#include "sync/host/remove_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <exception>
#include <optional>
#include <string_view>

#include "ssh/host/files.h"
#include "sync/host/copy_file.h"
#include "sync/host/kept_copy.h"
#include "sync/host/own_tree.h"
#include "sync/host/stored_tree.h"

namespace dtool::host {
namespace {

std::string run_folder(const std::string& run_id) {
  if (run_id.empty() || run_id.starts_with('.') || run_id.find('/') != run_id.npos)
    throw BadMessage("a run has no such id");
  return expand_home("~/.dtool/runs/" + run_id);
}

/// Adds the files below a tree's folder that are not as dtool put them there. `prefix`: the
/// folder's name in the tree, with a slash at its end; or empty.
void find_written(const std::string& tree, const std::string& prefix, const TreeRecord& record,
                  FileNames& found) {
  for (const std::string& each : list_folder(tree + "/" + prefix)) {
    // Python's bytecode is of no worth without the files beside it.
    if (each.starts_with(".~dtool~") || each == "__pycache__") continue;
    const std::string name = prefix + each;
    struct stat file;
    if (::lstat((tree + "/" + name).c_str(), &file) != 0) continue;
    if (S_ISDIR(file.st_mode)) {
      find_written(tree, name + "/", record, found);
    } else if (S_ISREG(file.st_mode) || S_ISLNK(file.st_mode)) {
      const auto known = record.identities.find(name);
      if (known == record.identities.end() || known->second != identity_of_copy(file))
        found.push_back(name);
    }
  }
}

/// Whether `to` has the file of `from` already, since an earlier time.
bool is_kept(Inside& from, Inside& to, const std::string& name, const struct stat& file) {
  const auto there = to.look(name);
  if (!there || (there->st_mode & S_IFMT) != (file.st_mode & S_IFMT)) return false;
  if (there->st_dev == file.st_dev && there->st_ino == file.st_ino) return true;
  if (S_ISLNK(file.st_mode)) return from.target_of(name) == to.target_of(name);
  return there->st_size == file.st_size && there->st_mtim.tv_sec == file.st_mtim.tv_sec &&
         there->st_mtim.tv_nsec == file.st_mtim.tv_nsec;
}

void keep(Inside& from, Inside& to, const std::string& name) {
  const auto file = from.look_at_file(name);
  if (!file || is_kept(from, to, name, *file)) return;
  if (to.look_at_file(name)) to.remove({name});
  const Inside::Spot source = from.find(name);
  const Inside::Spot spot = to.find(name, Inside::Way::made);
  if (source.folder == -1) return;  // another host that shares the tree has deleted it
  if (spot.folder == -1) throw std::runtime_error("there is no place for " + name);
  if (::linkat(source.folder, source.name, spot.folder, spot.name, 0) == 0) return;
  if (S_ISREG(file->st_mode)) {
    copy_file(from, to, name);
  } else if (::symlinkat(from.target_of(name).c_str(), spot.folder, spot.name) != 0) {
    throw std::runtime_error(with_reason(name));
  }
}

std::string keep_written_of(const std::string& run) {
  const std::string tree = run + "/tree";
  if (!is_folder(tree)) return "";
  const auto record = read_record(tree);
  if (!record || record->written.empty())
    throw Refused(tree + " is not as dtool made it: its record is gone",
                  "move what you need out of it, and delete it");
  FileNames found;
  find_written(tree, "", *record, found);
  if (found.empty()) return "";
  std::ranges::sort(found);
  const std::string folder = expand_home(record->written);
  try {
    if (!make_folders(folder)) throw std::runtime_error(with_reason("cannot make the folder"));
    Inside from(tree);
    Inside to(folder);
    for (const std::string& name : found) keep(from, to, name);
  } catch (const std::runtime_error& error) {
    throw Refused("cannot keep in " + folder + " what was written in " + tree + ": " + error.what(),
                  "free some space, or move the files out of the way");
  }
  return folder;
}

/// Returns where what was written in the tree is; empty: nothing was.
std::string remove_tree(const std::string& run) {
  const std::string kept = keep_written_of(run);
  // Of hosts that share the tree one alone deletes it.
  ::rename((run + "/tree").c_str(), (run + "/" + new_name_aside()).c_str());
  Inside run_folder(run);
  for (const std::string& name : run_folder.list())
    if (name.starts_with(kTreeAside)) run_folder.remove_folder(name);
  return kept;
}

std::optional<time_t> change_of(const std::string& path) {
  struct stat found;
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return found.st_mtim.tv_sec;
}

/// When the run's last machine ended; nothing if one has not, or if that is unknown.
std::optional<time_t> end_of(const std::string& run) {
  std::optional<time_t> last;
  for (const std::string& name : list_folder(run)) {
    if (!name.starts_with("machine")) continue;
    const std::string machine = run + "/" + name;
    const auto exit = change_of(machine + "/exit_code");
    const auto ended = exit ? exit : change_of(machine + "/killed");
    if (!ended) return std::nullopt;
    last = std::max(last.value_or(*ended), *ended);
  }
  return last;
}

bool was_never_started(const std::string& run) {
  const auto names = list_folder(run);
  return !names.empty() && std::ranges::all_of(names, [](const std::string& name) {
    return name.starts_with(kTreeAside) || name == "tree";
  });
}

void remove_old() {
  constexpr time_t kDay = 86400;
  const std::string runs = expand_home("~/.dtool/runs");
  // By the file system's clock: a run's folder has just been made there.
  const time_t now = change_of(runs).value_or(0);
  for (const std::string& name : list_folder(runs)) {
    const std::string run = runs + "/" + name;
    const bool is_unused = change_of(run).value_or(now) < now - kDay && was_never_started(run);
    const bool is_old = is_folder(run + "/tree") && end_of(run).value_or(now) < now - 30 * kDay;
    if (!is_unused && !is_old) continue;
    try {
      remove_tree(run);
      if (is_unused) ::rmdir(run.c_str());
    } catch (const std::exception&) {
      // Another run tries again.
    }
  }
  remove_old_copies();
  try {
    remove_old_stored_trees();
  } catch (const std::exception&) {
    // Likewise.
  }
}

}  // namespace

std::string keep_written(const std::string& run_id) {
  return keep_written_of(run_folder(run_id));
}

RemoveReply remove_run(const RemoveRequest& request) {
  RemoveReply reply;
  const std::string run = run_folder(request.run_id);
  if (!is_folder(run)) return reply;
  reply.had_tree = is_folder(run + "/tree");
  reply.kept = remove_tree(run);
  if (request.with_state) Inside(folder_of(run)).remove_folder(request.run_id);
  ::rmdir(run.c_str());
  return reply;
}

void remove_old_trees() {
  const pid_t child = ::fork();
  if (child != 0) return;
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int stream : {0, 1, 2}) ::dup2(nothing, stream);
  remove_old();
  ::_exit(0);
}

}  // namespace dtool::host
