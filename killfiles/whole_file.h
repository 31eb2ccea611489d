// SPDX-License-Identifier: MIT
// Files that are read and written whole: killfiles and configuration.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dtool::killfiles {

/// The bytes of `file`. Throws std::system_error with errno's code, naming the file.
std::string read_whole(const std::filesystem::path& file);

/// Replaces the content of `file`. A reader, even after a power failure, finds either the old text
/// or the new one: temporary file in the same folder, fsync, rename, fsync of the folder. The file
/// is 0600; missing folders are made 0700. Throws std::system_error naming the file.
void write_whole(const std::filesystem::path& file, std::string_view text);

}  // namespace dtool::killfiles
