// Files that are read and written whole: killfiles and configuration.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dtool::killfiles {

/// The bytes of `file`. Throws std::system_error with errno's code, naming the file.
std::string read_whole(const std::filesystem::path& file);

/// Puts `text` at `file` so that a reader, or a machine that loses power, finds the old text or the
/// new one and nothing between: temporary file in the same folder, fsync, rename, fsync of the
/// folder. The file is 0600; folders that are missing are made 0700. Throws std::system_error
/// naming the file.
void write_whole(const std::filesystem::path& file, std::string_view text);

}  // namespace dtool::killfiles
