// SPDX-License-Identifier: MIT
// SHA-256 of files: proves that a download is the right file.
#pragma once

#include <filesystem>
#include <string>

namespace dtool::trainer {

/// Which bytes of a file count: its own, or for a gzip file the unpacked ones (compressors produce
/// different bytes for the same content, and mirrors recompress).
enum class Counted { bytes, content };

/// The SHA-256 of a file as 64 lower-case hexadecimal digits. Throws std::runtime_error when the
/// file cannot be read or, for its content, when its gzip data is damaged or cut short.
std::string sha256_of(const std::filesystem::path& file, Counted counted);

}  // namespace dtool::trainer
