// SPDX-License-Identifier: MIT
#include "sync/host/prepare_tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ssh/host/child.h"
#include "ssh/host/sha256.h"
#include "sync/host/other_kinds.h"
#include "sync/host/package_reader.h"
#include "sync/host/stored_tree.h"
#include "sync/host/tree_folder.h"

namespace dtool::host {
namespace {

/// rsync replaces a folder by a file only where the folder is empty. `folders`: that files of these
/// names come for; `stale`: the files that the tree no longer has.
void make_way(Inside& inside, const FileNames& folders, const FileNames& stale) {
  FileNames blockers;
  for (const std::string& folder : folders) {
    const auto begin = std::ranges::lower_bound(stale, folder + "/");
    const auto end = std::find_if_not(begin, stale.end(), [&](const std::string& name) {
      return name.starts_with(folder + "/");
    });
    blockers.insert(blockers.end(), begin, end);
  }
  std::ranges::sort(blockers);
  inside.remove(blockers);
}

/// Whether there are files that the push must not touch before the user has said so: foreign ones,
/// and those that were edited here. Whether the former differ from the tree's is for rsync to find
/// out.
bool refuses(TreeFolder& folder, FileNames foreign, const FileNames& stale, PrepareReply& reply) {
  constexpr std::size_t kMostNamed = 10;
  const FileNames edited = folder.find_edited();
  FileNames lost;
  std::ranges::set_intersection(edited, stale, std::back_inserter(lost));
  const FileNames looked_at = names_of_both(foreign, names_without(edited, lost));
  const std::string list = folder.path_of(".foreign");
  if (!looked_at.empty()) {
    write_file(list, join_names(looked_at));
    reply.foreign = list;
  }
  reply.lost = static_cast<std::int64_t>(lost.size());
  if (lost.size() > kMostNamed) lost.resize(kMostNamed);
  reply.first_lost = std::move(lost);
  return reply.lost > 0 || !looked_at.empty();
}

/// Notes that the tree is whole, if it is: where times are kept less finely than on the launcher,
/// the next push compares again.
void settle(TreeFolder& folder, const PruneRequest& request) {
  Sha256 sha;
  FileNames stamps;
  Inside& inside = folder.inside();
  for (const std::string& name : folder.manifest()) {
    const auto file = inside.look_at_file(name);
    stamps.push_back(file ? stamp_of(*file, name) : "");
    if (!file) continue;
    sha.add(facts_of(*file, name, S_ISLNK(file->st_mode) ? inside.target_of(name) : ""));
  }
  if (to_hex(sha.finish()) == request.digest) folder.end_change(request.tree, stamps);
}

}  // namespace

PrepareReply prepare_tree(const PrepareRequest& request, FrameInput& input) {
  if (!is_program("rsync"))
    throw Refused("rsync is not installed", "its package is called rsync on every system");
  TreeFolder folder(request.folder);
  folder.take_lock();
  folder.read_manifest();
  const FileNames coming =
      read_names(PackageReader(input, std::chrono::milliseconds(request.patience_ms),
                               request.is_compressed ? Compressed::yes : Compressed::no));
  try {
    refuse_other_kinds(folder, coming);
  } catch (const Refused&) {
    folder.remove_marks();
    throw;
  }
  FileNames foreign;
  FileNames folders;
  FileNames missing;
  for (const std::string& name : names_without(coming, folder.manifest())) {
    const auto there = folder.inside().look(name);
    (!there ? missing : S_ISDIR(there->st_mode) ? folders : foreign).push_back(name);
  }
  const FileNames stale = names_without(folder.manifest(), coming);
  PrepareReply reply{folder.lock_path(), ""};
  if (request.refuses_foreign && refuses(folder, std::move(foreign), stale, reply)) return reply;
  ::unlink(folder.path_of(".foreign").c_str());
  folder.set_newest(request.tree);
  folder.begin_change();
  write_file(folder.path_of(".coming"), request.tree + '\0' + join_names(coming));
  // The coming files are in the manifest before rsync starts, so that all its leftovers are known
  // as dtool's. Existing files become dtool's once rsync has checked them.
  if (!missing.empty()) folder.write_manifest(names_of_both(folder.manifest(), missing));
  make_way(folder.inside(), folders, stale);
  return reply;
}

PruneReply prune_tree(const PruneRequest& request) {
  PruneReply reply;
  TreeFolder folder(request.folder);
  if (!request.was_sent) {
    folder.remove_marks();
    return reply;
  }
  folder.take_lock();
  if (folder.newest() != request.tree) {  // another one is being sent since: it prunes
    if (request.own) throw another_is_sending();
    return reply;
  }
  folder.remove_leftovers();
  folder.read_manifest();
  FileNames coming = split_names(read_file(folder.path_of(".coming"), kLargestList).value_or(""));
  if (!coming.empty() && coming.front() == request.tree) {
    coming.erase(coming.begin());
    const FileNames stale = names_without(folder.manifest(), coming);
    reply.removed = static_cast<std::int64_t>(folder.inside().remove(stale));
    folder.write_manifest(std::move(coming));
    ::unlink(folder.path_of(".coming").c_str());
  }
  settle(folder, request);
  folder.remove_marks();
  if (request.own) make_own_tree_of_code(folder, *request.own, request.tree);
  return reply;
}

}  // namespace dtool::host
