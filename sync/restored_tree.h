// SPDX-License-Identifier: MIT
// Puts a tree that was sent earlier together again, file by file, from folders that may have
// changed since. The listing that was kept at that time proves each file. `dtool rerun` does so
// with the code of an earlier run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sync/listing.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

class RestoredTree {
 public:
  /// `listing`: the tree's, with the words of the files' contents; `folder`: an empty folder, which
  /// is the user's alone. Throws std::runtime_error if the listing has names that lead out of the
  /// folder, or no words.
  RestoredTree(Listing listing, const std::filesystem::path& folder);

  /// Where the files are to be put.
  const std::filesystem::path& root() const { return root_; }
  /// The regular files that it still lacks; sorted. Links and folders are made from the listing.
  const std::vector<std::string>& missing() const { return missing_; }

  /// Puts there those of the missing files that `from` has under the same name and in the same
  /// size. Throws std::filesystem::filesystem_error.
  void copy_from(const std::filesystem::path& from);

  /// Looks at the missing files that are there now. Those with the right content are missing no
  /// longer, and the others are deleted.
  void prove();

  /// Once nothing is missing: makes the links, sets all modes and times, and returns the tree.
  Tree finish();

 private:
  const Listing listing_;
  std::filesystem::path root_;
  std::filesystem::path words_;  ///< the folder for read_contents()
  std::vector<std::string> missing_;
};

}  // namespace dtool::tree_sync
