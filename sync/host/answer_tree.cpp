// SPDX-License-Identifier: MIT
#include "sync/host/answer_tree.h"

#include <string>

#include "sync/host/mark.h"
#include "sync/host/own_tree.h"
#include "sync/host/package_reader.h"
#include "sync/host/stored_tree.h"
#include "sync/host/tree_folder.h"

namespace dtool::host {
namespace {

/// Without the lock: whether there is nothing to do here, or nothing yet.
bool is_answered(TreeFolder& folder, const Mark& mark, const TreeRequest& request,
                 TreeReply& reply) {
  // A tree of a run's own is made under the lock.
  const bool needs_lock = request.own && !has_own_tree(*request.own);
  reply.is_whole = !needs_lock && folder.has(request.tree);
  if (reply.is_whole) return true;
  reply.holder = mark.holder();
  if (reply.holder) return true;
  reply.is_same_folder = folder.is_at(request.root);
  return reply.is_same_folder;
}

/// All but the run's own tree.
TreeReply answer(TreeFolder& folder, const TreeRequest& request, FrameInput& input,
                 const TellNews& tell, std::optional<PackageServer>& server) {
  TreeReply reply;
  reply.reads_zstd = reads_zstd();
  const Mark mark(folder.path(), request.push, request.host);
  if (!request.is_asked && is_answered(folder, mark, request, reply)) {
    input.leave();
    return reply;
  }
  folder.take_lock();
  if (request.is_asked && folder.newest() != request.tree) throw another_is_sending();
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
      reply.unpacked = unpack(folder, request, input, tell, server);
      return reply;
    }
  }
  if (request.has_package) input.leave();
  return reply;
}

}  // namespace

TreeReply answer_tree(const TreeRequest& request, FrameInput& input, const TellNews& tell,
                      std::optional<PackageServer>& server) {
  TreeFolder folder(request.folder);
  TreeReply reply = answer(folder, request, input, tell, server);
  const bool is_whole = reply.is_whole || (reply.unpacked && reply.unpacked->is_whole);
  if (is_whole && request.own) make_own_tree_of_code(folder, *request.own, request.tree);
  return reply;
}

}  // namespace dtool::host
