// SPDX-License-Identifier: MIT
// dtool's own copy of the code in a folder of this host, from which large trees of runs are linked.
// No editor knows it, so none writes through its links. It is beside dtool's other records of the
// folder (tree_folder.h):
//   KEY.copy    the copy
//   KEY.copied  which file of the folder each file of the copy was made from
#pragma once

#include <string>

#include "sync/host/inside.h"
#include "sync/host/tree_folder.h"

namespace dtool::host {

class KeptCopy {
 public:
  /// Makes the copy's folder if it is missing. The caller holds the folder's lock.
  explicit KeptCopy(TreeFolder& folder);

  /// Makes the copy have these files of the folder (links are left out) and no others. `stamps`
  /// belong to the names. Only files that were changed since the last time, in the folder or here,
  /// are copied. Returns the files' identities (identity_of_copy). Throws std::runtime_error; then
  /// there is no copy any more.
  FileNames update(const FileNames& names, const FileNames& stamps);

  Inside& inside() { return inside_; }

 private:
  bool has(const std::string& name, const std::string& stamp, const FileNames& record,
           std::size_t& at);

  TreeFolder& folder_;
  std::string path_;
  Inside inside_;
};

/// Deletes copies that no run has used for 30 days.
void remove_old_copies();

}  // namespace dtool::host
