// SPDX-License-Identifier: MIT
// What git knows about a folder. Only this file runs git.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dtool::tree_sync {

/// The folder with `.git` at or above `folder`, on the same file system, as git
/// finds it.
std::optional<std::filesystem::path> find_checkout(const std::filesystem::path& folder);

/// The files in `folder` of a checkout that git tracks or would add, without
/// ignored files. The names are relative to `folder`, sorted bytewise and
/// unique. A submodule or an inner repository is one name, without a slash at
/// the end. Throws std::runtime_error, with a hint, if git is not installed,
/// refuses the repository or cannot read a folder: the list is never partial.
std::vector<std::string> git_files(const std::filesystem::path& folder);

/// The commit that is checked out in `folder`, with `-dirty` appended if what
/// is below `folder`, outside `left_out` (relative to `folder`, or empty), is
/// not what the commit has: as git compares them, with its rules for line ends,
/// but whatever settings and marks of the index let it overlook. Empty if there
/// is no checkout or no commit, if git does not answer, or if it would run
/// programs named by the checkout's own configuration (filters).
std::string git_commit(const std::filesystem::path& folder, const std::string& left_out);

/// What git tells of a checkout.
struct GitState {
  std::string commit;                  ///< 40 or 64 hex digits
  std::string branch;                  ///< empty: none is checked out
  bool is_dirty = false;               ///< a file was changed, added or deleted
  std::vector<std::string> changed;    ///< tracked files, relative to the checkout's root
  std::vector<std::string> untracked;  ///< files and folders (with a slash), likewise
  std::vector<std::string> inner;      ///< repositories inside with such a change, likewise
};

/// The same question as git_commit, with all that git answers. Nothing where
/// git_commit returns an empty text. Throws std::runtime_error, with a hint, if
/// git names a file outside the checkout.
std::optional<GitState> git_state(const std::filesystem::path& folder, const std::string& left_out);

/// The state in one word, as git_commit has it.
std::string to_string(const GitState& state);

/// The edits since the commit.
struct GitDiff {
  std::string text = {};                  ///< the edits in the form that `git apply` takes
  std::string left_out = {};              ///< why there is none; or empty
  std::vector<std::string> deleted = {};  ///< files, relative to the checkout's root
};

/// The edits of those of the state's changed files that are in `files`
/// (relative to `folder`, sorted). What deleted files had in them is not part
/// of it: they were not sent. Left out if the text would have more than `most`
/// bytes, or if git would have to read more than 16 MiB.
GitDiff git_diff(const std::filesystem::path& folder, const GitState& state,
                 const std::vector<std::string>& files, std::size_t most);

}  // namespace dtool::tree_sync
