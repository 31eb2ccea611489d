// What a tree looks like, file by file, without what is in the files: by this launcher and hosts
// tell whether a host has the tree, and what it lacks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sync/tree.h"

namespace dtool::tree_sync {

/// One file, link, or folder with files in it.
struct Entry {
  std::string name;   ///< relative to the root; a folder's ends with a slash
  std::string facts;  ///< of a file: size, time to the nanosecond, mode, target; of a folder: mode

  bool is_folder() const { return name.ends_with('/'); }
  std::uint64_t size() const;  ///< 0 of a folder
  bool operator==(const Entry&) const = default;
};

/// A tree at the time when it was listed.
struct Listing {
  std::vector<Entry> entries;  ///< sorted bytewise: a folder comes before what is in it
  std::string fingerprint;     ///< SHA-256 of all entries, in hex
  std::string digest;          ///< digest_of(entries)
};

/// Lists the tree's files and their folders as they are now. A file that has gone meanwhile is
/// listed as such: no host's file looks like it.
Listing list_tree(const Tree& tree);

/// SHA-256, in hex, of what the hosts' `find -printf '%p\0%s %T@ %m %l\0'` prints of the files
/// among the entries.
std::string digest_of(const std::vector<Entry>& entries);

/// What leads from one tree to another.
struct Delta {
  std::vector<Entry> changed;        ///< new or different; files and folders
  std::vector<std::string> removed;  ///< files
  std::uint64_t bytes = 0;           ///< of the changed files
  std::uint64_t rewritten = 0;       ///< of those among them that the earlier tree has, too
  bool changes_names = false;        ///< files were added or removed
  bool swaps_kinds = false;          ///< a file became a folder, or a folder a file
};

Delta find_delta(const std::vector<Entry>& before, const std::vector<Entry>& now);

/// Keeps the listing in `folder`, under its fingerprint, beside the newest seven others. Throws
/// std::filesystem::filesystem_error where that cannot be.
void keep_listing(const Listing& listing, const std::filesystem::path& folder);

/// The entries kept under that fingerprint. Nothing where there are none, or not those.
std::optional<std::vector<Entry>> kept_listing(const std::string& fingerprint,
                                               const std::filesystem::path& folder);

}  // namespace dtool::tree_sync
