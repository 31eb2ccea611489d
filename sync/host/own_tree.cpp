// SPDX-License-Identifier: MIT
#include "sync/host/own_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <unordered_set>

#include "ssh/host/sha256.h"
#include "sync/host/copy_file.h"
#include "sync/host/kept_copy.h"
#include "sync/host/package_reader.h"

namespace dtool::host {
namespace {

constexpr std::size_t kMostCopiedFiles = 1000;
constexpr std::uint64_t kMostCopiedBytes = 8U << 20U;
/// A tree on its way has such a name, and its maker's process id and the time behind it.
constexpr std::string_view kComing = ".tree.";

std::string name_of_coming() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::string(kComing) + std::to_string(::getpid()) + "." + std::to_string(now.tv_nsec);
}

/// Where a link of the tree leads: one that leaves the tree leads from the code folder on.
std::string target_in_tree(const std::string& name, const std::string& target,
                           const std::string& code) {
  if (target.starts_with('/')) return target;
  auto depth = std::ranges::count(name, '/');
  for (std::string_view rest = target; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (part == "..") --depth;
    if (!part.empty() && part != "." && part != "..") ++depth;
    if (depth < 0) return code + "/" + folder_of("/" + name).substr(1) + "/" + target;
  }
  return target;
}

/// A run's tree while it is made.
class Making {
 public:
  Making(TreeFolder& code, std::string run);
  ~Making() {
    if (!name_.empty()) run_folder_.remove_folder(name_);
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  /// The code's files. `stamps`: how they were when the tree was whole; empty: not known.
  void add_files(const FileNames& names, const FileNames& stamps);
  /// Links to everything in the code folder that is not of the tree, and to where outputs go.
  void add_links(const FileNames& names, std::string outputs);
  /// SHA-256 over the facts of all files as they were in the code folder.
  std::string digest() { return to_hex(facts_.finish()); }
  void put_in_place();

 private:
  void add_link(const std::string& name, const std::string& target);
  void note(const std::string& name);
  bool is_small(const FileNames& names);

  TreeFolder& code_;
  std::string run_;
  Inside run_folder_;
  std::string name_ = name_of_coming();
  std::optional<Inside> tree_;
  FileNames record_;
  Sha256 facts_;
};

Making::Making(TreeFolder& code, std::string run)
    : code_(code), run_(std::move(run)), run_folder_(run_) {
  if (::mkdir((run_ + "/" + name_).c_str(), S_IRWXU) != 0)
    throw std::runtime_error(with_reason("no folder can be made in " + run_));
  tree_.emplace(run_ + "/" + name_);
}

void Making::note(const std::string& name) {
  const auto file = tree_->look_at_file(name);
  record_.push_back(name);
  record_.push_back(file ? identity_of_copy(*file) : "");
}

void Making::add_link(const std::string& name, const std::string& target) {
  const Inside::Spot spot = tree_->find(name, Inside::Way::made);
  if (::symlinkat(target.c_str(), spot.folder, spot.name) != 0)
    throw std::runtime_error(with_reason(name));
  note(name);
}

bool Making::is_small(const FileNames& names) {
  if (names.size() > kMostCopiedFiles) return false;
  std::uint64_t bytes = 0;
  for (const std::string& name : names) {
    if (const auto file = code_.inside().look_at_file(name))
      bytes += static_cast<std::uint64_t>(file->st_size);
  }
  return bytes <= kMostCopiedBytes;
}

void Making::add_files(const FileNames& names, const FileNames& stamps) {
  FileNames found;
  for (std::size_t i = 0; i < names.size() && stamps.empty(); ++i) {
    const auto file = code_.inside().look_at_file(names[i]);
    if (!file || (!S_ISREG(file->st_mode) && !S_ISLNK(file->st_mode)))
      throw std::runtime_error(names[i] + " is gone");
    const std::string link = S_ISLNK(file->st_mode) ? code_.inside().target_of(names[i]) : "";
    facts_.add(facts_of(*file, names[i], link));
    found.push_back(stamp_of(*file, names[i]));
  }
  if (found.empty()) found = stamps;
  std::optional<KeptCopy> kept;
  FileNames identities;
  if (!is_small(names)) {
    kept.emplace(code_);
    identities = kept->update(names, found);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (found[i].starts_with('l')) {
      add_link(name, target_in_tree(name, code_.inside().target_of(name), code_.path()));
      continue;
    }
    if (kept) {
      const Inside::Spot from = kept->inside().find(name);
      const Inside::Spot to = tree_->find(name, Inside::Way::made);
      // A file of the disk has a limit to its names, and some file systems have no links at all.
      const bool is_linked = ::linkat(from.folder, from.name, to.folder, to.name, 0) == 0;
      if (!is_linked && (errno == ENOSPC || errno == EDQUOT))
        throw std::runtime_error(with_reason(name));
      if (is_linked) {
        record_.push_back(name);
        record_.push_back(identities[i]);
        continue;
      }
      copy_file(kept->inside(), *tree_, name);
    } else {
      const struct stat source = copy_file(code_.inside(), *tree_, name);
      if (stamp_of(source, name) != found[i])
        throw std::runtime_error(name + " was changed meanwhile");
    }
    note(name);
  }
}

void Making::add_links(const FileNames& names, std::string outputs) {
  if (outputs.ends_with('/')) outputs.pop_back();
  std::unordered_set<std::string_view> own(names.begin(), names.end());
  std::unordered_set<std::string_view> folders{""};
  for (const std::string& name : names) {
    for (std::size_t end = name.rfind('/'); end != name.npos && end != 0;
         end = name.rfind('/', end - 1)) {
      if (!folders.insert(std::string_view(name).substr(0, end)).second) break;
    }
  }
  for (const std::string_view folder : folders) {
    const std::string prefix = folder.empty() ? "" : std::string(folder) + "/";
    for (const std::string& each : list_folder(code_.path() + "/" + prefix)) {
      const std::string name = prefix + each;
      const bool is_dtools = each.starts_with(".~dtool~") || each == ".~tmp~";
      // Each tree has bytecode of its own files.
      if (own.contains(name) || folders.contains(name) || is_dtools || each == "__pycache__")
        continue;
      add_link(name, code_.path() + "/" + name);
    }
  }
  // The folder of outputs may not be there yet.
  for (std::size_t end = 0; !outputs.empty() && end != outputs.npos;) {
    end = outputs.find('/', end + 1);
    const std::string name = outputs.substr(0, end);
    if (name == "." || folders.contains(name)) continue;
    if (!own.contains(name) && !tree_->look(name)) add_link(name, code_.path() + "/" + name);
    break;
  }
}

void Making::put_in_place() {
  const std::string tree = run_ + "/tree";
  const std::string list = run_ + "/" + name_ + ".files";
  if (!write_in_place(list, join_names(record_))) {
    ::unlink(list.c_str());
    throw std::runtime_error(with_reason("cannot write into " + run_));
  }
  tree_.reset();
  if (::rename((run_ + "/" + name_).c_str(), tree.c_str()) == 0) {
    ::rename(list.c_str(), (tree + ".files").c_str());
    name_.clear();
    return;
  }
  const bool is_there = is_folder(tree);  // by another host that shares the run's folder
  const std::string reason = with_reason("cannot make " + tree);
  ::unlink(list.c_str());
  if (!is_there) throw std::runtime_error(reason);
}

void make_of(TreeFolder& folder, const OwnTree& own, FileNames names, const FileNames& stamps,
             const std::string& digest) {
  const std::string run = expand_home(own.run_folder);
  if (!is_folder(run))
    throw Refused("the run's folder " + run + " is gone", "was the run deleted meanwhile?");
  try {
    const OwnersAlone private_files;
    Making making(folder, run);
    making.add_files(names, stamps);
    making.add_links(names, own.outputs);
    if (!digest.empty() && making.digest() != digest)
      throw std::runtime_error("files in " + folder.path() + " were changed meanwhile");
    making.put_in_place();
  } catch (const std::runtime_error& error) {
    throw Refused(
        "cannot make the run's own copy of the code in " + run + ": " + error.what(),
        "free some space there, or let go of the files, and try again; --in_place runs in "
        "the code folder itself");
  }
}

/// Deletes caches of Python's and empty folders. Returns whether the folder has become empty.
bool drop_worthless(const std::string& folder) {
  bool is_empty = true;
  for (const std::string& name : list_folder(folder)) {
    const std::string path = folder + "/" + name;
    struct stat found;
    if (::lstat(path.c_str(), &found) != 0) continue;
    if (S_ISDIR(found.st_mode) && name == "__pycache__") Inside(folder).remove_folder(name);
    const bool is_kept = !S_ISDIR(found.st_mode) || (!drop_worthless(path) && exists(path));
    if (!is_kept) ::rmdir(path.c_str());
    is_empty = is_empty && !is_kept;
  }
  return is_empty;
}

/// Deletes a run's tree. Returns where what its processes wrote is now; empty: there is none. The
/// tree is moved first, so that of hosts which share it one alone deletes.
std::string remove_tree(const std::string& run) {
  const std::string tree = run + "/tree";
  const std::string list = tree + ".files";
  const FileNames record = split_names(read_file(list, kLargestList).value_or(""));
  ::unlink(list.c_str());
  Inside run_folder(run);
  for (const std::string& name : run_folder.list())
    if (name.starts_with(kComing)) run_folder.remove_folder(name);
  if (!is_folder(tree)) return "";
  const OwnersAlone private_files;
  const std::string kept = expand_home("~/.dtool/written/") + run.substr(folder_of(run).size() + 1);
  const bool is_moved = make_folders(folder_of(kept)) && ::rename(tree.c_str(), kept.c_str()) == 0;
  if (!is_moved && errno == ENOENT) return "";
  if (!is_moved) throw std::runtime_error(with_reason("cannot move " + tree + " to " + kept));
  {
    Inside inside(kept);
    FileNames own;
    for (std::size_t i = 0; i + 1 < record.size(); i += 2) {
      const auto file = inside.look_at_file(record[i]);
      if (file && identity_of_copy(*file) == record[i + 1]) own.push_back(record[i]);
    }
    inside.remove(own);
  }
  const bool is_empty = drop_worthless(kept);
  if (is_empty) ::rmdir(kept.c_str());
  ::rmdir(folder_of(kept).c_str());  // if it was the only one
  return is_empty ? "" : kept;
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
  return is_folder(run + "/tree") &&
         std::ranges::all_of(list_folder(run), [](const std::string& name) {
           return name.starts_with(kComing) || name == "tree" || name == "tree.files";
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
}

}  // namespace

bool has_own_tree(const OwnTree& own) {
  return is_folder(expand_home(own.run_folder) + "/tree");
}

void make_own_tree(TreeFolder& folder, const OwnTree& own, const std::string& tree) {
  if (has_own_tree(own)) return;
  // Where times are kept less finely than on the launcher, no tree counts as whole.
  const bool is_whole = folder.find_whole() == tree;
  make_of(folder, own, folder.manifest(), is_whole ? folder.stamps() : FileNames(), "");
}

FreezeReply freeze_tree(const FreezeRequest& request, FrameInput& input) {
  const FileNames names =
      read_names(PackageReader(input, std::chrono::milliseconds(request.patience_ms),
                               request.is_compressed ? Compressed::yes : Compressed::no));
  if (has_own_tree(request.own)) return {};
  TreeFolder folder(request.folder);
  folder.take_lock(TreeFolder::Use::read);
  if (!has_own_tree(request.own)) make_of(folder, request.own, names, {}, request.digest);
  return {};
}

RemoveReply remove_run(const RemoveRequest& request) {
  const std::string& name = request.run_id;
  if (name.empty() || name.starts_with('.') || name.find('/') != name.npos)
    throw BadMessage("a run has no such id");
  RemoveReply reply;
  const std::string runs = expand_home("~/.dtool/runs");
  const std::string run = runs + "/" + name;
  if (!is_folder(run)) return reply;
  reply.had_tree = is_folder(run + "/tree");
  reply.kept = remove_tree(run);
  if (request.with_state) Inside(runs).remove_folder(name);
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
