// What a tree looks like, file by file: by this the launcher and hosts tell whether a host has the
// tree, and what it lacks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sync/tree.h"

namespace dtool::tree_sync {

/// One file, link, or folder with files in it. It points into a listing's text.
struct Entry {
  std::string_view name;  ///< relative to the root; a folder's ends with a slash
  /// Of a file: size, time to the nanosecond, mode, target; of a folder: mode.
  std::string_view facts;
  /// What is in it: Contents' word. Empty of links, of folders, and where nobody asked.
  std::string_view content = {};

  bool is_folder() const { return name.ends_with('/'); }
  std::uint64_t size() const;  ///< 0 of a folder
  bool operator==(const Entry&) const = default;
};

/// A tree at the time when it was listed.
struct Listing {
  /// Of each entry its name, and its content, a blank and its facts; each ended by a NUL.
  std::unique_ptr<const std::string> text;
  std::vector<Entry> entries;  ///< sorted bytewise: a folder comes before what is in it
  std::string fingerprint;     ///< SHA-256 of the text, in hex
  std::string digest;          ///< SHA-256 of found_text(entries), in hex
};

/// Lists the tree's files as they were when it was read (one that nobody looked at is empty and
/// ages old: no host's file looks like it), and their folders as they are now. `contents` has a
/// word for each of the tree's files, or none at all.
Listing list_tree(const Tree& tree, const std::vector<std::string>& contents = {});

/// The listing that has this text.
Listing make_listing(std::string text);

/// What the hosts' `find -printf '%p %s %T@ %m %l\n'` prints of the files among the entries.
std::string found_text(const std::vector<Entry>& entries);

/// What leads from one tree to another.
struct Delta {
  std::vector<Entry> changed;             ///< new or different; files and folders; sorted
  std::vector<std::string_view> removed;  ///< files; sorted
  std::uint64_t bytes = 0;                ///< of the changed files
  std::uint64_t rewritten = 0;            ///< of those among them that the earlier tree has, too
  bool changes_names = false;             ///< files were added or removed
  bool swaps_kinds = false;               ///< a file became a folder, or a folder a file
  bool hides_edits = false;  ///< a file has other content, and the size and time that it had
};

/// Calls `action` with each folder, slash included, that `name` is in and its predecessor is not.
template <typename Action>
void for_each_new_folder(std::string_view name, std::string_view predecessor, Action action) {
  for (std::size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
    const std::string_view folder = name.substr(0, slash + 1);
    if (!predecessor.starts_with(folder)) action(folder);
  }
}

/// Points into the texts of both. Both must be sorted, as those of a listing are.
Delta find_delta(const std::vector<Entry>& before, const std::vector<Entry>& now);

}  // namespace dtool::tree_sync
