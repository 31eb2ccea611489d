// SPDX-License-Identifier: MIT
#include "sync/host/answer_tree.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "ssh/host/child.h"
#include "ssh/host/words.h"
#include "sync/host/own_tree.h"
#include "sync/host/package_reader.h"
#include "sync/host/stored_tree.h"
#include "sync/host/tree_folder.h"

namespace dtool::host {
namespace {

/// How hosts of a push that share the folder find each other: a file of that push, which names the
/// host that is handling the folder. Leftovers of an interrupted push do no harm.
class Mark {
 public:
  Mark(const TreeFolder& folder, const TreeRequest& request)
      : path_(folder.path() + "/" + std::string(kMark) + "." + request.push), host_(request.host) {
    if (request.push.find('/') != request.push.npos) throw BadMessage("a push has no such name");
    is_used_ = !request.push.empty();
  }

  /// The other host that has the folder in hand.
  std::optional<std::int64_t> holder() const {
    if (!is_used_ || !exists(path_)) return std::nullopt;
    std::string said = read_line(path_);
    // One that is being made is empty for a moment.
    for (int tries = 20; said.empty() && exists(path_) && tries > 0; --tries) {
      pause(std::chrono::milliseconds(50));
      said = read_line(path_);
    }
    const auto holder = parse_number<std::int64_t>(said);
    return holder == host_ ? std::nullopt : holder;
  }

  /// This host has it in hand, unless another one was there before.
  std::optional<std::int64_t> take() const {
    // Again where the one that was there has gone meanwhile.
    for (int tries = 20; is_used_ && tries > 0; --tries) {
      const Descriptor mark(
          ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
      if (mark.is_open()) {
        write_all(mark.get(), std::to_string(host_) + "\n");
        ::fchmod(mark.get(), 0644);  // hosts that are reached as other users read it, too
        break;
      }
      if (errno != EEXIST) break;
      if (const auto other = holder()) return other;
      if (exists(path_)) break;  // its own
    }
    return std::nullopt;
  }

 private:
  std::string path_;
  std::int64_t host_;
  bool is_used_ = false;
};

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
                 const TellNews& tell) {
  TreeReply reply;
  reply.reads_zstd = reads_zstd();
  const Mark mark(folder, request);
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
      reply.unpacked = unpack(folder, request, input, tell);
      return reply;
    }
  }
  if (request.has_package) input.leave();
  return reply;
}

}  // namespace

TreeReply answer_tree(const TreeRequest& request, FrameInput& input, const TellNews& tell) {
  TreeFolder folder(request.folder);
  TreeReply reply = answer(folder, request, input, tell);
  const bool is_whole = reply.is_whole || (reply.unpacked && reply.unpacked->is_whole);
  if (is_whole && request.own) make_own_tree_of_code(folder, *request.own, request.tree);
  return reply;
}

}  // namespace dtool::host
