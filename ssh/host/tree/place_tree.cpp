// SPDX-License-Identifier: MIT
// Puts a code tree in its place.
#include "ssh/host/tree/answer_tree.h"

#include <optional>

#include "killfiles/channel/sha256.h"
#include "ssh/host/tree/copy_folder.h"
#include "ssh/host/tree/placing.h"
#include "ssh/host/tree/tree_change.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/message.h"

namespace dtool::host {
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
