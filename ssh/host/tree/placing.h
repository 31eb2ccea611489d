// SPDX-License-Identifier: MIT
// Puts the files of a code tree, which lie aside on a host, in their places.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ssh/host/tree/inside.h"
#include "ssh/host/tree/tree_change.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/push.h"

namespace dtool::host {

/// The folder in which they lie.
class Aside {
 public:
  /// `is_known`: every file there is of this tree, and came since the machine was booted. Throws
  /// std::runtime_error if the folder is not there.
  Aside(const std::string& path, bool is_known) : path_(path), inside_(path), is_known_(is_known) {}

  /// The file as it is there, if it is the one that is listed.
  std::optional<struct stat> find(const Listed& file);
  /// Bytes of the file that came before the push was interrupted.
  std::uint64_t part_of(const CopyEntry& entry) const;
  /// Takes away what an earlier tree had where a file of that name, or a folder on the way to it,
  /// is to come. Files of this tree may go with a folder: they come again.
  void make_way(const std::string& name);
  /// Moves a file, which find() has found so, to its place, also where another file system is
  /// mounted there.
  void give(const CopyEntry& entry, const struct stat& found, Inside& code);

 private:
  std::string path_;
  Inside inside_;
  bool is_known_;
};

class Placing {
 public:
  /// `basis`: as in PlaceRequest.
  Placing(TreeFolder& folder, const TreeChange& change, Aside& aside, std::string basis,
          bool refuses_foreign)
      : folder_(folder),
        change_(change),
        aside_(aside),
        basis_(std::move(basis)),
        refuses_foreign_(refuses_foreign) {}

  /// Notes in the reply what is lacking, and what may not be replaced. Throws Refused if something
  /// of another kind is in the way.
  void look(PlaceReply& reply);
  /// From here on `tree` is whole there. Returns how many files went.
  std::size_t put(const std::string& tree);

 private:
  /// A file that comes, stays or goes, and what was seen in its place.
  struct Seen {
    std::string name;
    std::optional<struct stat> here;
    /// The status of a file that comes, where it lies aside.
    std::optional<struct stat> aside = {};
  };

  bool is_own(const std::string& name, const struct stat& here) const;
  bool is_like(const Listed& file, const struct stat& here);
  void require_unchanged(const Seen& seen);
  [[noreturn]] void refuse_change(const std::string& name) const;
  void set_facts(const CopyEntry& entry);
  std::string stamp_in_place(const CopyEntry& entry);

  TreeFolder& folder_;
  const TreeChange& change_;
  Aside& aside_;
  std::string basis_;
  bool refuses_foreign_;
  FileNames edited_;         ///< the edited files, if no tree is whole there
  FileNames added_;          ///< the files that come and are not in the manifest
  std::vector<Seen> files_;  ///< the files that stay or come: the change's, where none is lacking
  std::vector<Seen> going_;
};

// Looks for what a person has put where a code tree has something of another kind: a file or a link
// where it has a folder, a folder where it has a file or a link. Nothing replaces that.

/// Throws Refused, with the first few names, if there is any. `coming`: the names of the tree's
/// files, sorted. What dtool has put there is not in the way; the manifest must have been read.
void refuse_other_kinds(TreeFolder& folder, const FileNames& coming);

}  // namespace dtool::host
