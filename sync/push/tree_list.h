// SPDX-License-Identifier: MIT
// A code tree as what parcels are cut from (sync/copy/parcels.h): the tree's listing comes first,
// as a file, and then its files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "ssh/wire/push.h"
#include "sync/copy/copy_list.h"
#include "sync/copy/parcels.h"
#include "sync/listing.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

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
    std::string basis;  ///< as in host::PlaceRequest
  };
  Known known(const host::TreeReply& reply) const;
  /// What it said that it lacks. Throws host::BadMessage on entries that are none.
  std::vector<std::pair<std::size_t, std::uint64_t>> lacking(const host::PlaceReply& reply) const;

 private:
  struct OwnFolder {
    OwnFolder();
    ~OwnFolder();
    OwnFolder(const OwnFolder&) = delete;
    OwnFolder& operator=(const OwnFolder&) = delete;
    std::filesystem::path path;
  };

  const Listing& listing_;
  OwnFolder folder_;  ///< with the listing
  CopyList files_;
};

}  // namespace dtool::tree_sync
