// SPDX-License-Identifier: MIT
// The steps of a push on one host, as requests to dtool-host, and the meaning of the replies.
// push.cpp goes through them.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/messages/tree.h"
#include "ssh/host_request.h"
#include "ssh/remote.h"
#include "sync/host/mark.h"
#include "sync/package.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// What to do about a host's files that are not as dtool sent them, if it did: `look` for them, or
/// `leave` them alone, since all equal the tree's or may be overwritten.
enum class ForeignFiles { look, leave };

/// What all steps on one host share.
struct RemoteTree {
  std::string folder;                  ///< on the host: absolute, or from `~/`
  std::string fingerprint;             ///< the Listing's
  std::string digest;                  ///< likewise
  std::chrono::seconds patience{300};  ///< for a package of which no more bytes come
  ForeignFiles foreign = ForeignFiles::leave;
  std::optional<host::OwnTree> own = {};  ///< of the run that is given a copy of the tree
};

/// This push's name and the host's number in it: hosts that share the folder recognise each other
/// by them. An empty name: there is only one host.
struct InPush {
  std::string name;
  std::size_t host = 0;
};

/// The properties by which a host recognises the tree's own folder.
host::TreeRoot root_of(const Tree& tree);

/// The tree's own folder, and the mark in it that proves to hosts that they see it.
class Root {
 public:
  explicit Root(const Tree& tree) : folder_(tree.root), root_(root_of(tree)) {}
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  ~Root();

  const host::TreeRoot& unproven() const { return root_; }
  /// The same with the mark, which is made first; nothing if the folder cannot be written to.
  std::optional<host::TreeRoot> marked();

 private:
  std::filesystem::path folder_;
  host::TreeRoot root_;
  std::optional<host::Mark> mark_;
  std::string name_;
};

/// First step: makes the folder if it is missing, and finds out how much of the tree is there.
/// `guess` (may be null) is sent along; the host unpacks it at once if it has the guess's basis.
ssh::Command ask_command(const host::TreeRoot& root, const RemoteTree& tree, const InPush& push,
                         const Package* guess = nullptr);

/// Sends the package from the tree that the host has to the current one. `relay` is for a sealed
/// package.
ssh::Command unpack_command(const Package& package, const RemoteTree& tree,
                            const std::optional<host::RelayPart>& relay = {});

/// The reply to either command, after any news. Nothing if it failed; then `result` gets its error
/// and hint.
std::optional<host::TreeReply> read_tree_reply(ssh::HostResult& result);

/// The reply in the output of a host, behind its TreeNews.
std::string_view last_frame(std::string_view out);

/// Removes the mark that ask_command left in the folder, if nothing has to be sent after all.
ssh::Command leave_command(const RemoteTree& tree);

/// Marks the host as failed: `count` files there are not as dtool sent them, if it did, and differ
/// from the tree's; `first` names a few of them.
void set_foreign(ssh::HostResult& result, const std::string& folder, std::size_t count,
                 const std::vector<std::string>& first);

/// After rsync, which sends files as it finds them, with the times that it found first: marks the
/// host as failed if a file of the tree is not as it was listed any more, since another host may
/// have got it as it was.
void refuse_changed(ssh::HostResult& result, const Tree& tree);

/// Marks the host as failed: its folder may be the tree's own, and that cannot be proven.
void set_unproven(ssh::HostResult& result, const std::string& folder);

/// Before rsync: records which files are about to come (`names` has all names of the tree), and
/// makes room for files whose names belonged to folders. Under ForeignFiles::look it does nothing
/// if there are such files.
ssh::Command prepare_command(std::shared_ptr<const ssh::SharedBytes> names, Compression compression,
                             const RemoteTree& tree);

/// After rsync: deletes the files of an earlier push that the tree no longer has, and records that
/// the tree is complete.
ssh::Command prune_command(const RemoteTree& tree);

/// Where nothing was sent, since the folder is the tree's own: gives the run its copy. `names` has
/// all names of the tree.
ssh::Command freeze_command(std::shared_ptr<const ssh::SharedBytes> names, Compression compression,
                            const RemoteTree& tree);

/// The only reply in a result. Nothing if the host failed; then `result` gets its error and hint.
template <typename Reply>
std::optional<Reply> reply_in(ssh::HostResult& result) {
  if (result.failure != ssh::Failure::none) return std::nullopt;
  try {
    return ssh::read_reply<Reply>(result);
  } catch (const host::BadMessage& error) {
    result.exit_code = 1;
    result.error = error.what();
    result.hint = error.hint();
    return std::nullopt;
  }
}

}  // namespace dtool::tree_sync
