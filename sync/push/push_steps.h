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

#include "ssh/host/tree/tree_folder.h"
#include "ssh/machine/files.h"
#include "ssh/remote.h"
#include "ssh/wire/push.h"
#include "sync/copy/copy_list.h"
#include "sync/copy/parcels.h"
#include "sync/listing.h"
#include "sync/package_writer.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

// A change of a tree that goes along with the question how much of the tree a host has, before the
// host has answered. A host that has the tree from which the change leads needs nothing more.

struct Guess {
  /// The change from the tree with these entries, which may be none, to `now`.
  Guess(const Tree& tree, const Listing& now, const std::vector<Entry>& before);
  Guess(const Guess&) = delete;
  Guess& operator=(const Guess&) = delete;

  std::string basis = {};  ///< the fingerprint of that tree; empty: none
  CopyList files = {};     ///< the files that changed
  RunningSums sums = {};
  Package package = {};
};

/// It leads from the tree that was last sent from this folder, or from nothing if none was sent.
/// Null if that tree equals the current one, or if the change is too large to be sent on a guess.
std::unique_ptr<Guess> make_guess(const Tree& tree, const Listing& now);

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
ssh::Command ask_command(host::TreeRequest request, const Guess* guess);

/// Marks the host as failed: `count` files there are not as dtool sent them, if it did, and differ
/// from the tree's; `first` names a few of them.
void set_foreign(ssh::HostResult& result, const std::string& folder, std::size_t count,
                 const std::vector<std::string>& first);

/// Marks the host as failed: its folder may be the tree's own, and that cannot be proven.
void set_unproven(ssh::HostResult& result, const std::string& folder);

// A code tree as what parcels are cut from (sync/copy/parcels.h): the tree's listing comes first,
// as a file, and then its files.

/// The entries of a listing as what is sent of the tree.
CopyList list_entries(const Tree& tree, const std::vector<Entry>& entries);

class TreeList {
 public:
  /// Both must outlive it. Throws std::runtime_error if no file can be written in /tmp.
  TreeList(const Tree& tree, const Listing& listing);

  const CopyList& files() const { return files_; }

  /// What a host lacks that has been asked how much it has. Of one that has something, and no tree
  /// that this launcher knows, nothing is known: it is sent the listing, and finds out.
  struct Known {
    std::vector<std::pair<std::size_t, std::uint64_t>> lacking;
    std::string basis;  ///< the same as `basis` in host::PlaceRequest
  };
  Known known(const host::TreeReply& reply) const;
  /// What it said that it lacks. Throws host::BadMessage on entries that are none.
  std::vector<std::pair<std::size_t, std::uint64_t>> lacking(const host::PlaceReply& reply) const;

 private:
  const Listing& listing_;
  ssh::TemporaryFolder folder_;  ///< the folder with the listing
  CopyList files_;
};

}  // namespace dtool::tree_sync
