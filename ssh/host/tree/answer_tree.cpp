// SPDX-License-Identifier: MIT
#include "ssh/host/tree/answer_tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>
#include <string>

#include "killfiles/channel/sha256.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/frame_input.h"
#include "ssh/host/process_table.h"
#include "ssh/host/tree/copy_folder.h"
#include "ssh/host/tree/inside.h"
#include "ssh/host/tree/own_tree.h"
#include "ssh/host/tree/placing.h"
#include "ssh/host/tree/tree_change.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/message.h"

namespace dtool::host {

namespace {

/// Without the lock: whether there is nothing to do here, or nothing yet.
bool is_answered(TreeFolder& folder, const Mark& mark, const TreeRequest& request,
                 TreeReply& reply) {
  // A tree of a run's own is made under the lock.
  const bool needs_lock = request.own && !has_own_tree(*request.own);
  reply.is_whole = !needs_lock && folder.has(request.tree);
  if (reply.is_whole) {
    const std::string path = folder.path() + "/" + kComing;
    if (exists(path)) remove_idle_coming(folder.inside(), path);
    return true;
  }
  reply.holder = mark.holder();
  if (reply.holder) return true;
  reply.is_same_folder = folder.is_at(request.root);
  return reply.is_same_folder;
}

/// The folder to which parcels are brought, for this user alone. Whether something lies there.
bool prepare_aside(const TreeFolder& folder, const std::string& name, const std::string& tree) {
  const std::string path = folder.path() + "/" + name;
  if (!name.starts_with(kComing) || name.find('/') != name.npos)
    throw BadMessage("no parcels are brought to " + path);
  struct stat status {};
  const std::string note = path + "/" + kMadeFor;
  if (::mkdir(path.c_str(), S_IRWXU) == 0) {
    write_in_place(note, made_for(tree) + "\n");
    return false;
  }
  if (errno != EEXIST) throw Refused(with_reason("cannot make the folder " + path));
  if (::lstat(path.c_str(), &status) != 0) throw Refused(with_reason(path));
  require_own(path, status);
  if (read_line(note) != made_for(tree) && !write_in_place(note, "several\n"))
    throw Refused(with_reason("cannot write " + note));
  return true;
}

/// Puts the change in its place that comes with the question. What cannot be taken so comes in
/// parcels, which say why they cannot.
PlaceReply take_guess(TreeFolder& folder, const TreeRequest& request, FrameInput& input) {
  PlaceReply reply;
  reply.path = with_tilde(folder.path());
  folder.remove_leftovers();
  struct Scratch {
    Inside& code;
    const std::string name = new_leftover();
    ~Scratch() { code.remove_folder(name); }
  } const scratch{folder.inside()};
  const std::string path = folder.path() + "/" + scratch.name;
  std::optional<TreeChange> change;
  try {
    const std::chrono::milliseconds patience(request.patience_ms);
    const auto compressed = request.is_compressed ? Compressed::yes : Compressed::no;
    const Taken taken =
        take_package(*CopyFolder::alone(path), PackageReader(input, patience, compressed));
    if (taken.spoilt.empty()) change = change_of(taken, folder.manifest());
  } catch (const std::exception&) {
    input.leave();
  }
  if (!change) return reply;
  try {
    Aside files(path, true);
    Placing placing(folder, *change, files, request.basis, request.refuses_foreign);
    placing.look(reply);
    if (reply.foreign == 0 && reply.lacks.empty()) {
      reply.removed = static_cast<std::int64_t>(placing.put(request.tree));
      reply.is_whole = true;
      // The leftovers of an interrupted push; another launcher may be sending another tree.
      remove_idle_coming(folder.inside(), folder.path() + "/" + kComing);
      return reply;
    }
    folder.remove_marks();
  } catch (const Refused&) {
    folder.remove_marks();
    throw;
  } catch (const std::exception&) {  // nothing counts as whole there
  }
  return reply;
}

/// All but the run's own tree.
TreeReply answer(TreeFolder& folder, const TreeRequest& request, FrameInput& input) {
  TreeReply reply;
  reply.reads_zstd = reads_zstd();
  const Mark mark(folder.path(), request.push, request.host);
  if (is_answered(folder, mark, request, reply)) {
    input.leave();
    return reply;
  }
  folder.take_lock();
  std::string whole = folder.find_whole();
  folder.set_newest(request.tree);
  reply.is_whole = whole == request.tree;
  if (!reply.is_whole) reply.holder = mark.take();
  if (!reply.is_whole && !reply.holder) {
    // Another host that shares the folder may have changed it before it let go of the mark.
    if (!request.push.empty()) whole = folder.find_whole();
    reply.basis = whole;
    reply.is_empty = whole.empty() && folder.is_empty();
    const bool has_basis = request.basis.empty() ? reply.is_empty : request.basis == whole;
    if (request.has_package && has_basis && (reply.reads_zstd || !request.is_compressed)) {
      reply.placed = take_guess(folder, request, input);
    } else if (request.has_package) {
      input.leave();
    }
    const bool is_over = reply.placed && (reply.placed->is_whole || reply.placed->foreign > 0);
    if (!is_over) reply.has_begun = prepare_aside(folder, request.aside, request.tree);
    return reply;
  }
  if (request.has_package) input.leave();
  return reply;
}

}  // namespace

TreeReply answer_tree(const TreeRequest& request, FrameInput& input) {
  TreeFolder folder(request.folder);
  TreeReply reply = answer(folder, request, input);
  const bool is_whole = reply.is_whole || (reply.placed && reply.placed->is_whole);
  if (is_whole && request.own) make_own_tree_of_code(folder, *request.own, request.tree);
  return reply;
}

LookReply look_at_source(const LookRequest& request) {
  const std::string path = expand_home(request.folder);
  const Mark mark(path, request.mark, request.host);
  if (request.lets_go) {
    mark.let_go();
    return {};
  }
  if (!is_program("rsync"))
    throw Refused("rsync is not installed", "its package is called rsync on every system");
  if (!request.run_id.empty()) keep_written(request.run_id);
  if (!exists(path + "/"))
    throw Refused("there is no folder " + path,
                  request.run_id.empty()
                      ? ""
                      : "the run has not begun to write there, or it was moved or deleted since");
  Inside folder(path);
  if (!request.file.empty() && !folder.look_at_file(request.file))
    throw Refused("there is no file " + path + "/" + request.file);
  struct stat itself {};
  ::stat(path.c_str(), &itself);
  return {itself.st_ino, identify_host(), mark.take()};
}

namespace {

/// The listing of the tree of that fingerprint, if it lies in the folder of that path.
std::optional<TreeChange> listed_in(const std::string& path, const std::string& tree) {
  const auto text = read_file(path + "/" + kListing, kLargestList);
  if (!text || to_hex(sha256(*text)) != tree) return std::nullopt;
  return read_listing(*text);
}

/// All but the run's own tree.
PlaceReply answer(TreeFolder& folder, const PlaceRequest& request) {
  PlaceReply reply;
  reply.path = with_tilde(folder.path());
  folder.take_lock();
  if (folder.newest() != request.tree) throw another_is_sending();
  reply.is_whole = folder.find_whole() == request.tree;
  const CopyFolder coming(request.parcels);  // no parcel is taken while it lives
  if (coming.holder()) throw Refused("another host goes on with this push");
  const std::string& path = coming.path();
  if (folder_of(path) != folder.path()) throw BadMessage("the parcels are for another folder");
  const auto clear = [&] { remove_coming(folder.inside(), path); };
  if (reply.is_whole) {  // another launcher has sent the same meanwhile
    clear();
    return reply;
  }
  const auto change = listed_in(path, request.tree);
  reply.lacks_listing = !change;
  if (!change) return reply;
  const std::string wanted = made_for(request.tree);
  Aside aside(path, !wanted.empty() && read_line(path + "/" + kMadeFor) == wanted);
  Placing placing(folder, *change, aside, request.basis, request.refuses_foreign);
  const auto give_up = [&] {
    folder.remove_marks();
    clear();  // the user may never want it there
  };
  try {
    placing.look(reply);
  } catch (const Refused&) {
    give_up();
    throw;
  }
  if (reply.foreign > 0) give_up();
  if (reply.foreign > 0 || !reply.lacks.empty()) return reply;
  reply.removed = static_cast<std::int64_t>(placing.put(request.tree));
  reply.is_whole = true;
  clear();
  return reply;
}

}  // namespace

PlaceReply place_tree(const PlaceRequest& request) {
  TreeFolder folder(request.folder);
  PlaceReply reply = answer(folder, request);
  if (reply.is_whole && request.own) make_own_tree_of_code(folder, *request.own, request.tree);
  return reply;
}

}  // namespace dtool::host
