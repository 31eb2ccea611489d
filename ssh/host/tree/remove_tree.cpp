// SPDX-License-Identifier: MIT
// The end of a run's own tree.
#include "ssh/host/tree/own_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <ctime>
#include <exception>
#include <optional>
#include <string_view>

#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/tree/inside.h"
#include "ssh/host/tree/kept_copy.h"
#include "ssh/host/tree/tree_change.h"

namespace dtool::host {
namespace {

/// In the run's folder.
const std::string kTreeLock = std::string(kTreeAside) + "lock";

std::string run_folder(const std::string& run_id) {
  if (run_id.empty() || run_id.starts_with('.') || run_id.find('/') != run_id.npos)
    throw BadMessage("a run has no such id");
  return expand_home("~/.dtool/runs/" + run_id);
}

/// What the processes of a run wrote into its tree.
class Written {
 public:
  /// Throws std::runtime_error if a part of the tree cannot be seen: nothing that is there may
  /// count as absent.
  Written(const std::string& tree, const TreeRecord& record) : record_(record) {
    const Descriptor folder(::open(tree.c_str(), kPathToFolder));
    if (!folder.is_open()) throw std::runtime_error(with_reason(tree));
    look_into(folder.get(), "");
    std::ranges::sort(files);
  }

  FileNames files;   ///< the files that are not as dtool put them there; sorted
  FileNames mounts;  ///< folders of other file systems; what is there is not looked at

 private:
  static constexpr int kPathToFolder = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

  /// `prefix`: the folder's name in the tree, with a slash at its end; or empty.
  void look_into(int folder, const std::string& prefix) {
    const Descriptor readable(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto names = readable.is_open() ? read_folder(readable) : std::nullopt;
    if (!names) throw std::runtime_error(with_reason("cannot look into " + prefix));
    for (const std::string& each : *names) {
      // Python's bytecode is of no worth without the files beside it.
      if (each.starts_with(".~dtool~") || each == "__pycache__") continue;
      look_at(folder, each, prefix + each);
    }
  }

  void look_at(int folder, const std::string& last, const std::string& name) {
    struct stat file;
    if (::fstatat(folder, last.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return;  // the program has deleted it since
      throw std::runtime_error(with_reason("cannot look at " + name));
    }
    if (S_ISDIR(file.st_mode)) {
      const Descriptor inner(::openat(folder, last.c_str(), kPathToFolder));
      if (!inner.is_open() && errno == ENOENT) return;
      if (!inner.is_open()) throw std::runtime_error(with_reason("cannot look into " + name));
      if (is_mount(inner.get())) {
        mounts.push_back(name);
      } else {
        look_into(inner.get(), name + "/");
      }
    } else if (S_ISREG(file.st_mode) || S_ISLNK(file.st_mode)) {
      const auto known = record_.identities.find(name);
      if (known == record_.identities.end() || known->second != identity_of_copy(file))
        files.push_back(name);
    }
  }

  const TreeRecord& record_;
};

/// Whether `to` has the file of `from` already, since an earlier time.
bool is_kept(Inside& from, Inside& to, const std::string& name, const struct stat& file) {
  const auto there = to.look(name);
  if (!there || (there->st_mode & S_IFMT) != (file.st_mode & S_IFMT)) return false;
  if (there->st_dev == file.st_dev && there->st_ino == file.st_ino) return true;
  if (S_ISLNK(file.st_mode)) return from.target_of(name) == to.target_of(name);
  return there->st_size == file.st_size && there->st_mtim.tv_sec == file.st_mtim.tv_sec &&
         there->st_mtim.tv_nsec == file.st_mtim.tv_nsec;
}

/// Copies it to a name aside first: under its own name a file is whole.
void keep_copy(Inside& from, Inside& to, const std::string& name) {
  const std::string aside = ".~dtool~kept";
  if (to.look_at_file(aside)) to.remove({aside});
  copy_file(from, to, name, aside);
  const int root = to.find(aside).folder;  // stays open
  const Inside::Spot spot = to.find(name, Inside::Way::made);
  if (::renameat(root, aside.c_str(), spot.folder, spot.name) != 0)
    throw std::runtime_error(with_reason(name));
}

void keep(Inside& from, Inside& to, const std::string& name) {
  const auto file = from.look_at_file(name);
  if (!file || is_kept(from, to, name, *file)) return;
  if (to.look_at_file(name)) to.remove({name});
  const Inside::Spot source = from.find(name);
  const Inside::Spot spot = to.find(name, Inside::Way::made);
  if (spot.folder == -1) throw std::runtime_error("there is no place for " + name);
  // A file of several names may be changed under another one, such as that in another run's tree.
  const bool is_alone = file->st_nlink == 1 || S_ISLNK(file->st_mode);
  if (is_alone && ::linkat(source.folder, source.name, spot.folder, spot.name, 0) == 0) return;
  if (S_ISREG(file->st_mode)) {
    keep_copy(from, to, name);
  } else if (::symlinkat(from.target_of(name).c_str(), spot.folder, spot.name) != 0) {
    throw std::runtime_error(with_reason(name));
  }
}

/// Hosts that share the run's folder take turns.
Descriptor lock_trees(const std::string& run) {
  constexpr int kLockPatience = 240'000;  // milliseconds
  Descriptor lock = lock_file(run + "/" + kTreeLock, kLockPatience);
  if (!lock.is_open() && is_folder(run))
    throw Refused(with_reason("cannot lock " + run + "/" + kTreeLock),
                  "another host, or another dtool, may be at work there: try again");
  return lock;
}

struct Kept {
  std::string folder;  ///< the folder that holds what was written; empty: nothing was
  FileNames mounts;
};

/// The caller holds the lock.
Kept keep_written_of(const std::string& run) {
  const std::string tree = run + "/tree";
  if (!is_folder(tree)) return {};
  const auto record = read_record(tree);
  if (!record || record->written.empty())
    throw Refused(tree + " is not as dtool made it: its record is gone",
                  "move what you need out of it, and delete it");
  const std::string folder = expand_home(record->written);
  try {
    Written written(tree, *record);
    if (written.files.empty()) return {"", std::move(written.mounts)};
    if (!make_folders(folder)) throw std::runtime_error(with_reason("cannot make the folder"));
    Inside from(tree);
    Inside to(folder);
    for (const std::string& name : written.files) keep(from, to, name);
    return {folder, std::move(written.mounts)};
  } catch (const std::runtime_error& error) {
    throw Refused("cannot keep in " + folder + " what was written in " + tree + ": " + error.what(),
                  "mend that, or move what you need out of the tree and delete it");
  }
}

/// Returns where what was written in the tree is; empty: nothing was. The caller holds the lock.
std::string remove_tree(const std::string& run) {
  const std::string tree = run + "/tree";
  const Kept kept = keep_written_of(run);
  if (!kept.mounts.empty())
    throw Refused(tree + "/" + kept.mounts.front() + " is another file system",
                  "unmount it, and try again");
  if (is_folder(tree) && ::rename(tree.c_str(), (run + "/" + new_name_aside()).c_str()) != 0)
    throw Refused(with_reason("cannot delete " + tree));
  Inside run_folder(run);
  for (const std::string& name : run_folder.list()) {
    if (!name.starts_with(kTreeAside) || name == kTreeLock) continue;
    run_folder.remove_folder(name);
    if (run_folder.look(name)) throw Refused("cannot delete all of " + run + "/" + name);
  }
  return kept.folder;
}

}  // namespace

std::optional<time_t> end_of_run(const std::string& run) {
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

namespace {

bool was_never_started(const std::string& run) {
  const auto names = list_folder(run);
  return !names.empty() && std::ranges::all_of(names, [](const std::string& name) {
    return name.starts_with(kTreeAside) || name == "tree";
  });
}

}  // namespace

std::string keep_written(const std::string& run_id) {
  const std::string run = run_folder(run_id);
  if (!is_folder(run + "/tree")) return "";
  const Descriptor lock = lock_trees(run);
  return keep_written_of(run).folder;
}

RemoveReply remove_run(const RemoveRequest& request) {
  RemoveReply reply;
  const std::string run = run_folder(request.run_id);
  assert(!request.run_id.empty() && !request.run_id.starts_with('.') &&
         request.run_id.find('/') == std::string::npos);
  if (!is_folder(run)) return reply;
  const Descriptor lock = lock_trees(run);
  if (!is_folder(run)) return reply;  // a host that shares it was quicker
  reply.had_tree = is_folder(run + "/tree");
  reply.kept = remove_tree(run);
  if (request.with_state) Inside(folder_of(run)).remove_folder(request.run_id);
  ::unlink((run + "/" + kTreeLock).c_str());
  ::rmdir(run.c_str());
  if (request.with_state && is_folder(run)) throw Refused("cannot delete all of " + run);
  return reply;
}

void remove_old_trees(std::int64_t unused) {
  constexpr time_t kDay = 86400;
  const std::string runs = expand_home("~/.dtool/runs");
  // By the file system's clock: a run's folder has just been made there.
  const time_t now = change_of(runs).value_or(0);
  for (const std::string& name : list_folder(runs)) {
    const std::string run = runs + "/" + name;
    const bool is_unused = change_of(run).value_or(now) < now - kDay && was_never_started(run);
    const bool is_old = is_folder(run + "/tree") && end_of_run(run).value_or(now) < now - unused;
    if (!is_unused && !is_old) continue;
    try {
      if (marked_runs().contains(name)) continue;  // somebody visits it
      const Descriptor lock = lock_trees(run);
      remove_tree(run);
      ::unlink((run + "/" + kTreeLock).c_str());
      if (is_unused) ::rmdir(run.c_str());
    } catch (const std::exception&) {
      // Another run tries again.
    }
  }
  remove_old_copies(unused);
  try {
    remove_old_stored_trees(unused);
  } catch (const std::exception&) {
    // Likewise.
  }
}

}  // namespace dtool::host
