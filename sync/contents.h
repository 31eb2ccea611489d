// SPDX-License-Identifier: MIT
// A short word for the content of each file of a tree. Size and time alone miss an edit that keeps
// both.
#pragma once

#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sync/tree.h"

namespace dtool::tree_sync {

/// A word for each of the tree's files: the first 32 hex digits of the SHA-256 of its content. The
/// word is empty for a link, and for a file that cannot be read (sending the file then reports
/// why). A file is read only if no earlier word is valid: `folder` keeps the words of the latest
/// trees, and inode and ctime, which every edit changes, tell whether a word is still valid. If
/// `folder` cannot be written, all files are read again next time. `now`: in seconds since 1970.
std::vector<std::string> read_contents(const Tree& tree, const std::filesystem::path& folder,
                                       std::time_t now);

/// The same with the words that this machine keeps, as of now.
std::vector<std::string> read_contents(const Tree& tree);

// A folder of files below `~/.dtool` that make later pushes faster. Files are written whole and are
// accessible to their owner alone; only the newest ones stay.

/// Writes `begin` and `rest` into the file of that name in `folder`, which it makes if needed, and
/// deletes all but the newest eight files there. Throws std::filesystem::filesystem_error if that
/// fails.
void keep_file(const std::filesystem::path& folder, const std::string& name, std::string_view begin,
               std::string_view rest);

/// The files of the folder, newest first.
std::vector<std::filesystem::path> newest_first(const std::filesystem::path& folder);

}  // namespace dtool::tree_sync
