// SPDX-License-Identifier: MIT
// What git knows about a folder. Only this file runs git.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dtool::tree_sync {

/// The folder with `.git` at or above `folder`, on the same file system, as git finds it.
std::optional<std::filesystem::path> find_checkout(const std::filesystem::path& folder);

/// The files in `folder` of a checkout that git tracks or would add, without ignored files. The
/// names are relative to `folder`, sorted bytewise and unique. A submodule or an inner repository
/// is one name, without a slash at the end. Throws std::runtime_error, with a hint, if git is not
/// installed, refuses the repository or cannot read a folder: the list is never partial.
std::vector<std::string> git_files(const std::filesystem::path& folder);

/// The commit that is checked out in `folder`, with `-dirty` appended if git knows of a change
/// below `folder` outside `left_out` (relative to `folder`, or empty). Empty if there is no
/// checkout or no commit, if git does not answer, or if it would run programs named by the
/// checkout's own configuration (filters).
std::string git_commit(const std::filesystem::path& folder, const std::string& left_out);

}  // namespace dtool::tree_sync
