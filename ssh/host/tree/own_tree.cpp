// SPDX-License-Identifier: MIT
#include "ssh/host/tree/own_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "killfiles/channel/sha256.h"
#include "ssh/host/frame_input.h"
#include "ssh/host/tree/kept_copy.h"

namespace dtool::host {
namespace {

constexpr std::size_t kMostCopiedFiles = 1000;
constexpr std::uint64_t kMostCopiedBytes = 8U << 20U;
/// The record in a tree: where to keep what is written, then each file's name and identity.
const std::string kRecord = ".~dtool~tree";

using Parts = std::vector<std::string_view>;

/// Adds the parts of a path, as far as that goes by their names alone. Returns whether the path
/// never leaves where `parts` began.
bool follow(Parts& parts, std::string_view path) {
  bool stays = true;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part == ".." && parts.empty()) stays = false;
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  return stays;
}

/// The way from the link `name` to the same place in the tree, for a link that leads from one of
/// the folders `roots` out and into it again, or there by its whole path; or empty.
std::string way_inside(std::string_view folder, const std::string& target, const FileNames& roots) {
  for (const std::string& root : roots) {
    Parts base;
    follow(base, root);
    Parts led;
    if (!target.starts_with('/')) {
      led = base;
      follow(led, folder);
    }
    follow(led, target);
    if (base.empty() || led.size() < base.size() ||
        !std::equal(base.begin(), base.end(), led.begin()))
      continue;
    Parts up;
    follow(up, folder);
    std::string way = ".";
    for (std::size_t i = 0; i < up.size(); ++i) way += "/..";
    for (std::size_t i = base.size(); i < led.size(); ++i) way.append("/").append(led[i]);
    return way.size() > 2 ? way.substr(2) : way;
  }
  return {};
}

/// Where a link of the tree leads: one that leaves the tree leads from the code folder on, unless
/// it leads to the code folder itself.
std::string target_in_tree(const std::string& name, const std::string& target,
                           const std::string& code, FileNames roots) {
  const std::size_t slash = name.rfind('/');
  const std::string_view folder = std::string_view(name).substr(0, slash == name.npos ? 0 : slash);
  Parts parts;
  follow(parts, folder);
  if (!target.starts_with('/') && follow(parts, target)) return target;
  roots.push_back(code);
  if (std::string way = way_inside(folder, target, roots); !way.empty()) return way;
  if (target.starts_with('/')) return target;
  return code + folder_of("/" + name) + "/" + target;
}

/// `stamps` are those of the tree's files.
bool is_small(const FileNames& stamps) {
  if (stamps.size() > kMostCopiedFiles) return false;
  std::uint64_t bytes = 0;
  for (const std::string& stamp : stamps) bytes += size_in(stamp);
  return bytes <= kMostCopiedBytes;
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

  /// The code's files. `stamps`: how they were when the tree was whole; empty: not known. `roots`:
  /// OwnTree's.
  void add_files(const FileNames& names, const FileNames& stamps, const FileNames& roots);
  /// Links to everything in the code folder that is not of the tree, and to where outputs go.
  void add_links(const FileNames& names, std::string outputs);
  void add_folders(const FileNames& names);
  /// SHA-256 over the facts of all files as they were in the code folder.
  std::string digest() { return to_hex(facts_.finish()); }
  void put_in_place(const std::string& written);

 private:
  void add_link(const std::string& name, const std::string& target);
  void note(const std::string& name, const struct stat& file);

  TreeFolder& code_;
  std::string run_;
  Inside run_folder_;
  std::string name_ = new_name_aside();
  std::optional<Inside> tree_;
  FileNames record_;
  FileNames copied_;  ///< the others are links
  Sha256 facts_;
};

Making::Making(TreeFolder& code, std::string run)
    : code_(code), run_(std::move(run)), run_folder_(run_) {
  if (::mkdir((run_ + "/" + name_).c_str(), S_IRWXU) != 0)
    throw std::runtime_error(with_reason("no folder can be made in " + run_));
  tree_.emplace(run_ + "/" + name_);
}

void Making::note(const std::string& name, const struct stat& file) {
  record_.push_back(name);
  record_.push_back(identity_of_copy(file));
}

void Making::add_link(const std::string& name, const std::string& target) {
  const Inside::Spot spot = tree_->find(name, Inside::Way::made);
  struct stat link;
  if (::symlinkat(target.c_str(), spot.folder, spot.name) != 0 ||
      ::fstatat(spot.folder, spot.name, &link, AT_SYMLINK_NOFOLLOW) != 0)
    throw std::runtime_error(with_reason(name));
  note(name, link);
}

void Making::add_files(const FileNames& names, const FileNames& stamps, const FileNames& roots) {
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
  assert(found.size() == names.size());
  std::optional<KeptCopy> kept;
  if (!is_small(found)) {
    kept.emplace(code_);
    kept->update(names, found);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (found[i].starts_with('l')) {
      add_link(name, target_in_tree(name, code_.inside().target_of(name), code_.path(), roots));
      continue;
    }
    if (kept) {
      // A file of the disk has a limit to its names, and some file systems have no links at all.
      const bool is_linked = kept->link(i, tree_->find(name, Inside::Way::made));
      if (!is_linked && (errno == ENOSPC || errno == EDQUOT))
        throw std::runtime_error(with_reason(name));
      if (is_linked) {
        record_.push_back(name);
        record_.push_back(kept->identity(i));
        continue;
      }
    }
    const Copied copied = copy_file(kept ? kept->inside() : code_.inside(), *tree_, name);
    if (!kept && stamp_of(copied.source, name) != found[i])
      throw std::runtime_error(name + " was changed meanwhile");
    note(name, copied.copy);
    copied_.push_back(name);
  }
  if (kept) kept->note_links();
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

void Making::add_folders(const FileNames& names) {
  for (const std::string& name : names) {
    const std::string inner = name + "/file";  // the folder is made on the way to it
    tree_->find(inner, Inside::Way::made);     // nothing is made behind a link or a file
  }
}

void Making::put_in_place(const std::string& written) {
  const std::string aside = run_ + "/" + name_;
  const std::string tree = run_ + "/tree";
  tree_->flush(copied_);
  assert(record_.size() % 2 == 0);  // a name, an identity
  record_.insert(record_.begin(), written);
  write_file(aside + "/" + kRecord, join_names(record_));
  tree_.reset();
  if (::rename(aside.c_str(), tree.c_str()) == 0) {
    name_.clear();
    return;
  }
  const std::string reason = with_reason("cannot make " + tree);
  // Hosts that share the run's folder share the tree, and another one was first.
  if (!is_folder(tree)) throw std::runtime_error(reason);
}

void make_of(TreeFolder& folder, const OwnTree& own, FileNames names, const FileNames& stamps,
             const std::string& digest) {
  const std::string run = expand_home(own.run_folder);
  if (!is_folder(run))
    throw Refused("the run's folder " + run + " is gone", "was the run deleted meanwhile?");
  try {
    const OwnersAlone private_files;
    Making making(folder, run);
    making.add_files(names, stamps, own.roots);
    making.add_links(names, own.outputs);
    making.add_folders(own.folders);
    if (!digest.empty() && making.digest() != digest)
      throw std::runtime_error("files in " + folder.path() + " were changed meanwhile");
    making.put_in_place(own.written);
  } catch (const std::runtime_error& error) {
    throw Refused(
        "cannot make the run's own copy of the code in " + run + ": " + error.what(),
        "free some space there, or let go of the files, and try again; --in_place runs in "
        "the code folder itself");
  }
}

}  // namespace

std::string new_name_aside() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::string(kTreeAside) + std::to_string(::getpid()) + "." + std::to_string(now.tv_nsec);
}

std::optional<TreeRecord> read_record(const std::string& tree) {
  FileNames all = split_names(read_file(tree + "/" + kRecord, kLargestList).value_or(""));
  if (all.size() % 2 == 0) return std::nullopt;
  TreeRecord record;
  record.written = std::move(all.front());
  for (std::size_t i = 1; i < all.size(); i += 2)
    record.identities.emplace(std::move(all[i]), std::move(all[i + 1]));
  return record;
}

bool has_own_tree(const OwnTree& own) {
  return is_folder(expand_home(own.run_folder) + "/tree");
}

void make_own_tree(TreeFolder& folder, const OwnTree& own, const std::string& tree) {
  if (has_own_tree(own)) return;
  // Where times are kept less finely than on the launcher, no tree counts as whole.
  const bool is_whole = folder.whole() == tree;
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

}  // namespace dtool::host
