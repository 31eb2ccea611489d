// A folder of files below `~/.dtool` that make later pushes faster: written whole, for nobody
// else's eyes, and only the newest of them stay.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::tree_sync {

/// Writes `begin` and `rest` into the file of that name in `folder`, which it makes, and deletes
/// all but the newest eight there. Throws std::filesystem::filesystem_error if that cannot be.
void keep_file(const std::filesystem::path& folder, const std::string& name, std::string_view begin,
               std::string_view rest);

/// What is in the folder, newest first.
std::vector<std::filesystem::path> newest_first(const std::filesystem::path& folder);

}  // namespace dtool::tree_sync
