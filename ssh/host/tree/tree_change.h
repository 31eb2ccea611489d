// SPDX-License-Identifier: MIT
// What a code tree on a host is to become: all of it, as the launcher listed it, or a change from
// the tree that is there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ssh/host/tree/take_parcel.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/tree.h"

namespace dtool::host {

/// A file or link as it is to be.
struct Listed {
  CopyEntry entry;  ///< the entry with the first digits of its SHA-256; they are empty for a link
  std::uint64_t place = 0;  ///< the place among the listing's entries
};

struct ListedFolder {
  std::string name;
  mode_t mode = 0;
};

struct TreeChange {
  std::vector<Listed> files;  ///< the files that come, or may have to; sorted by name
  std::vector<ListedFolder> folders;
  FileNames names;  ///< the names of all files that the tree then has; sorted
};

/// The whole tree of a listing (sync/listing.h): for each entry its name, then its content, a blank
/// and its facts; each part ends with a NUL. Throws BadMessage.
TreeChange read_listing(std::string_view text);

/// The change that a package has brought, from a tree with files of these names. Throws BadMessage.
TreeChange change_of(const Taken& taken, const FileNames& before);

// A folder of dtool's own for a code tree, `~/.dtool/code/NAME`. `dtool rerun` sends an earlier
// run's tree there, since the code folder may hold newer code by now.

/// make_own_tree() of a folder that may be such a one: then the run's tree has links to the files
/// of the code folder, and the stored tree counts as just used. The caller holds the folder's lock.
void make_own_tree_of_code(TreeFolder& folder, const OwnTree& own, const std::string& tree);

/// Deletes stored trees, with dtool's records of them, that no run was made of for so many seconds.
void remove_old_stored_trees(std::int64_t unused);

}  // namespace dtool::host
