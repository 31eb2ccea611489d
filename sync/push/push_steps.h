// SPDX-License-Identifier: MIT
// The steps of a push on one host, as requests to dtool-host, and the meaning of the replies.
// push.cpp goes through them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/tree/mark.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/host_request.h"
#include "ssh/remote.h"
#include "ssh/wire/push.h"
#include "sync/push/guess.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// What all steps on one host share.
struct RemoteTree {
  std::string folder;            ///< on the host: absolute, or from `~/`
  std::string fingerprint;       ///< the Listing's
  bool refuses_foreign = false;  ///< files that are not as dtool sent them, if it did, and differ
  std::optional<host::OwnTree> own = {};  ///< of the run that is given a copy of the tree
};

/// This push's name and the host's number in it: hosts that share the folder recognise each other
/// by them. An empty name: there is only one host. `aside`: as in host::TreeRequest.
struct InPush {
  std::string name;
  std::size_t host = 0;
  std::string aside = host::kComing;
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
                         const Guess* guess = nullptr);

/// Puts the tree in its place, if all of it is there. `basis`, `parcels`: as in host::PlaceRequest.
ssh::Command place_command(const RemoteTree& tree, const std::string& basis,
                           const host::CopyPlace& parcels);

/// Marks the host as failed: `count` files there are not as dtool sent them, if it did, and differ
/// from the tree's; `first` names a few of them.
void set_foreign(ssh::HostResult& result, const std::string& folder, std::size_t count,
                 const std::vector<std::string>& first);

/// Marks the host as failed: its folder may be the tree's own, and that cannot be proven.
void set_unproven(ssh::HostResult& result, const std::string& folder);

/// Where nothing was sent, since the folder is the tree's own: gives the run its copy. `names` has
/// all names of the tree, `digest` is the Listing's.
ssh::Command freeze_command(std::shared_ptr<const ssh::SharedBytes> names, Compression compression,
                            const RemoteTree& tree, const std::string& digest);

}  // namespace dtool::tree_sync
