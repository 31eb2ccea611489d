// SPDX-License-Identifier: MIT
// A folder of files below `~/.dtool` that make later pushes faster. Files are written whole and are
// accessible to their owner alone; only the newest ones stay.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::tree_sync {

/// Writes `begin` and `rest` into the file of that name in `folder`, which it makes if needed, and
/// deletes all but the newest eight files there. Throws std::filesystem::filesystem_error if that
/// fails.
void keep_file(const std::filesystem::path& folder, const std::string& name, std::string_view begin,
               std::string_view rest);

/// The files of the folder, newest first.
std::vector<std::filesystem::path> newest_first(const std::filesystem::path& folder);

}  // namespace dtool::tree_sync
