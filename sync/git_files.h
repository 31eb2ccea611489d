// What git says about a folder: the one place where git is run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dtool::tree_sync {

/// The folder at or above `folder` that holds `.git`, on the same file system, as git looks for it.
std::optional<std::filesystem::path> find_checkout(const std::filesystem::path& folder);

/// What git tracks in `folder` of a checkout or would add to it, ignored files left out; names
/// relative to `folder`, sorted bytewise, each once. Submodules and repositories inside are one
/// name each, without a slash at the end. Throws std::runtime_error, with a hint, where git is not
/// installed, refuses the repository or cannot read a folder: its answer is whole or absent.
std::vector<std::string> git_files(const std::filesystem::path& folder);

/// The commit that is checked out in `folder`, with `-dirty` behind it where git knows of a change
/// below `folder`, `left_out` (relative to it, or empty) aside; empty if there is no checkout,
/// no commit, git does not answer, or would run programs that the checkout's own configuration
/// names (filters).
std::string git_commit(const std::filesystem::path& folder, const std::string& left_out);

}  // namespace dtool::tree_sync
