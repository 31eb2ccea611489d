// SPDX-License-Identifier: MIT
// dtool's own copy of the code in a folder of this host, from which large trees of runs are linked.
// No editor knows it, so none writes through its links. It is beside dtool's other records of the
// folder (tree_folder.h):
//   KEY.copy    the copy
//   KEY.copied  which file of the folder each file of the copy was made from, and how it is since
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/tree/inside.h"
#include "ssh/host/tree/tree_folder.h"

namespace dtool::host {

class KeptCopy {
 public:
  /// Makes the copy's folder if it is missing. The caller holds the folder's lock.
  explicit KeptCopy(TreeFolder& folder);

  /// Makes the copy have these files of the folder (links are left out) and no others. `stamps`
  /// belong to the names. Only files that were changed since the last time, in the folder or here,
  /// are copied: a run can write to them through its links, and set the time back. Throws
  /// std::runtime_error; then there is no copy any more.
  void update(const FileNames& names, const FileNames& stamps);

  /// Gives the copy of the name at that place another name; whether that worked. Throws
  /// std::runtime_error if somebody changed the file since update().
  bool link(std::size_t place, const Inside::Spot& to);
  /// To be called after the last link: what dtool's own links changed is no sign of a change.
  void note_links() { write_list(); }

  /// identity_of_copy() of the copy of the name at that place.
  const std::string& identity(std::size_t place) const { return files_.at(place).identity; }
  Inside& inside() { return inside_; }

 private:
  struct File {
    std::string identity;  ///< empty: it is a link, and not here
    /// The time of its last change of any kind (ctime): a further name of the file counts, too.
    std::string changed;
  };

  bool has(std::size_t place, const struct stat& file, std::string_view known);
  void copy(std::size_t place);
  void clear();
  void write_list();

  TreeFolder& folder_;
  std::string path_;
  Inside inside_;
  FileNames names_;
  FileNames stamps_;
  std::vector<File> files_;  ///< the files of the names, in the same order
};

/// Deletes copies that no run has used for so many seconds.
void remove_old_copies(std::int64_t unused);

// Copies of files of a host, for the folders in which runs work.

/// What the kernel knows of both files after copying. `source` differs from before if the file was
/// changed meanwhile.
struct Copied {
  struct stat source;
  struct stat copy;
};

/// Copies a file with its permissions and time; `as` is its name in `to` if that is another one.
/// Where the file system can, both share their bytes until one is changed. Throws
/// std::runtime_error.
Copied copy_file(Inside& from, Inside& to, const std::string& name, const std::string& as = "");

/// Whether both files have the same bytes from where they are to be read next. Throws
/// std::runtime_error.
bool have_same_bytes(const Descriptor& one, const Descriptor& other);

/// Tells whether a file is the one that was put there: `inode size time`. Unlike a stamp it stays
/// as it is when another name of the file is made.
std::string identity_of_copy(const struct stat& file);

}  // namespace dtool::host
