// SPDX-License-Identifier: MIT
// Files that are written whole: models, checkpoints, tables, pictures.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace dtool::trainer {

/// What a file is called until it is complete: this stands behind its name.
inline constexpr const char* kTemporary = ".partial";

/// Takes the next bytes of a file.
using Sink = std::function<void(std::string_view)>;

/// Writes to `file` what `write` gives to its sink, so that at every instant the file is absent,
/// the former one, or complete: a temporary file beside it, fsync, rename, fsync of the folder.
/// Throws std::system_error, and what `write` throws.
void write_whole(const std::filesystem::path& file, const std::function<void(const Sink&)>& write);

/// The same with all bytes at once.
void write_whole(const std::filesystem::path& file, const std::string& content);

}  // namespace dtool::trainer
