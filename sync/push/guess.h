// SPDX-License-Identifier: MIT
// A change of a tree that goes along with the question how much of the tree a host has, before the
// host has answered. A host that has the tree from which the change leads needs nothing more.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sync/copy/copy_list.h"
#include "sync/copy/parcels.h"
#include "sync/listing.h"
#include "sync/package.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

struct Guess {
  /// The change from the tree with these entries, which may be none, to `now`.
  Guess(const Tree& tree, const Listing& now, const std::vector<Entry>& before);
  Guess(const Guess&) = delete;
  Guess& operator=(const Guess&) = delete;

  std::string basis = {};  ///< the fingerprint of that tree; empty: none
  CopyList files = {};     ///< that changed
  RunningSums sums = {};
  Package package = {};
};

/// It leads from the tree that was last sent from this folder, or from nothing if none was sent.
/// Null if that tree equals the current one, or if the change is too large to be sent on a guess.
std::unique_ptr<Guess> make_guess(const Tree& tree, const Listing& now);

}  // namespace dtool::tree_sync
