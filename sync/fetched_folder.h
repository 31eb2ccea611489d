// SPDX-License-Identifier: MIT
// Folders of fetched outputs are marked, so that they are no code of the next run and no other
// run's outputs come into them. `dtool fetch` marks them, and the reader of a tree looks.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace dtool::tree_sync {

/// The mark's name. Its text has git ignore the folder, too.
inline constexpr const char* kFetchedMark = ".gitignore";

/// The run whose outputs were fetched into the folder; nothing if it has no mark.
std::optional<std::string> fetched_run(const std::filesystem::path& folder);

/// Whether the folder has nothing but the beginning of this run's mark, which a fetch that was
/// killed, or met a full disk, leaves; also an empty file.
bool has_only_half_a_mark(const std::filesystem::path& folder, const std::string& run_id);

/// Marks an existing folder, unless it has this run's mark. Throws std::runtime_error naming the
/// file that cannot be written.
void mark_fetched(const std::filesystem::path& folder, const std::string& run_id);

/// Takes the folder away if it has nothing but the mark.
void remove_if_only_marked(const std::filesystem::path& folder);

}  // namespace dtool::tree_sync
