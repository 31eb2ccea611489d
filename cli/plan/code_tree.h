// SPDX-License-Identifier: MIT
// The code of a run: which files of the current folder it has, and where it goes on a host.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/record/record.h"
#include "ssh/host.h"
#include "sync/git_files.h"
#include "sync/tree.h"

namespace dtool::cli {

/// Throws UsageError if it was deleted.
std::filesystem::path current_folder();

/// The folder on `host` for the code of `here`: `code_path` if it is given; `here` itself on
/// `local`; else the same path below the home folder, or `~/NAME`.
std::string code_folder(const ssh::Host& host, const std::string& code_path,
                        const std::filesystem::path& here = current_folder());

/// The output folder, from the code folder, with a slash at its end; empty if it is not inside.
std::string outputs_inside(const std::string& output_dir);

/// Throws UsageError if the current folder is the home folder, `/tmp` or `/`.
void require_code_tree();

/// What the flags say of the files to send.
struct CodeChoice {
  std::vector<std::string> excludes = {};  ///< patterns (sync/tree.h)
  std::vector<std::string> includes = {};  ///< files and folders that are sent all the same
  std::string output_dir = {};             ///< is not sent
  std::vector<std::string> secrets = {};   ///< files that are not sent
};

/// The files of the current folder. Throws as require_code_tree(), and UsageError if an included
/// path is outside of the folder.
tree_sync::Tree read_code_tree(CodeChoice choice);

/// What is worth a note: exclude patterns of `typed` that match nothing, a .gitignore that no git
/// reads, pointers of Git LFS in place of files.
std::vector<std::string> notes_on_tree(const tree_sync::Tree& tree,
                                       const std::vector<std::string>& typed);

/// `163.0 MB: data 140.0 MB, runs 12.0 MB; …` of a tree that is large for code; else empty.
std::string note_on_size(const tree_sync::Tree& tree);

/// What git tells of the current folder (sync/git_files.h); nothing where it tells nothing.
std::optional<tree_sync::GitState> state_of_code_tree(const std::string& output_dir);

/// What a run's record says of the code. The tree's listing is not known yet.
RecordedCode record_code(const tree_sync::Tree& tree,
                         const std::optional<tree_sync::GitState>& state);

}  // namespace dtool::cli
