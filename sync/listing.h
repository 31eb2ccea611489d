// SPDX-License-Identifier: MIT
// A list of a tree's files with their properties. The launcher and the hosts compare listings to
// find out whether a host has the tree, and what it lacks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/wire/copy.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// One file, link, or folder that holds files. It points into a listing's text.
struct Entry {
  std::string_view name;  ///< relative to the root; a folder's name ends with a slash
  /// For a file: size, time to the nanosecond, permissions, target; for a folder: permissions.
  std::string_view facts;
  /// The word from contents.h. Empty for links and folders, and if contents were not read.
  std::string_view content = {};

  bool is_folder() const { return name.ends_with('/'); }
  std::uint64_t size() const;  ///< 0 for a folder
  bool operator==(const Entry&) const = default;
};

/// The same as a host is told it, without its SHA-256.
host::CopyEntry described(const Entry& entry);

/// A tree at the time when it was listed.
struct Listing {
  /// For each entry its name, then its content, a blank and its facts; each part ends with a NUL.
  std::unique_ptr<const std::string> text;
  std::vector<Entry> entries;  ///< sorted bytewise: a folder comes before its files
  std::string fingerprint;     ///< SHA-256 of the text, in hex
  std::string digest;          ///< SHA-256, in hex, of the files' names and facts, as a host lists
                               ///< them: `find -printf '%p %s %T@ %m %l\n'`
};

/// Lists the tree's files as they were when the tree was read, and their folders as they are now. A
/// file that was not looked at gets size 0 and the time 1970, so that no host's file equals it.
/// `contents` has a word for each of the tree's files, or is empty.
Listing list_tree(const Tree& tree, const std::vector<std::string>& contents = {});

/// The listing that has this text.
Listing make_listing(std::string text);

/// The changes from one tree to another.
struct Delta {
  std::vector<Entry> changed;             ///< new or different; files and folders; sorted
  std::vector<std::string_view> removed;  ///< files; sorted
  std::uint64_t bytes = 0;                ///< the sum of the changed files' sizes
  bool hides_edits = false;               ///< a file's content changed, but not its size and time
};

/// Compares two lists, both sorted as in a listing. The result points into the texts of both.
Delta find_delta(const std::vector<Entry>& before, const std::vector<Entry>& now);

// Listings of the trees that this launcher sent last, in files below `~/.dtool/sent`. A host that
// still has one of those trees need not list its files.

/// `~/.dtool/sent`.
std::filesystem::path sent_listings();

/// Keeps the listing of the tree below `root` in `folder`, under its fingerprint, beside the seven
/// newest others. If that fails, as in a full home, the next push is slower but still correct: it
/// is not reported.
void keep_listing(const Listing& listing, const std::filesystem::path& root,
                  const std::filesystem::path& folder = sent_listings());

/// The listing kept under that fingerprint. Nothing if it is missing or damaged.
std::optional<Listing> kept_listing(const std::string& fingerprint,
                                    const std::filesystem::path& folder = sent_listings());

/// The fingerprint of the last kept listing of the tree below `root`. Nothing if none was kept, or
/// if newer ones have displaced it.
std::optional<std::string> last_kept(const std::filesystem::path& root,
                                     const std::filesystem::path& folder = sent_listings());

}  // namespace dtool::tree_sync
