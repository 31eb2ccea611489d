// What is in a tree's files, one short word each. Size and time alone miss an edit that keeps both.
#pragma once

#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "sync/tree.h"

namespace dtool::tree_sync {

/// A word for each of the tree's files: the first 32 hex digits of the SHA-256 of what is in it;
/// empty for a link, and for a file that cannot be read (sending it tells why). A file is read only
/// where it was not before: `folder` keeps the words of the trees that were asked for last, and
/// inode and ctime, which no edit leaves as they are, tell whether a word still holds. Where
/// `folder` cannot be written, all files are read again next time. `now`: in seconds since 1970.
std::vector<std::string> read_contents(const Tree& tree, const std::filesystem::path& folder,
                                       std::time_t now);

}  // namespace dtool::tree_sync
