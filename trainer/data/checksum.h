// SHA-256 of files: what makes a download the file that was meant.
#pragma once

#include <filesystem>
#include <string>

namespace dtool::trainer {

/// What of a file counts: its bytes, or for a gzip file what they unpack to (two compressors make
/// different bytes of the same content; mirrors recompress).
enum class Counted { bytes, content };

/// The SHA-256 of a file as 64 lower-case hexadecimal digits. Throws std::runtime_error when the
/// file cannot be read or, for its content, when its gzip data is damaged or cut short.
std::string sha256_of(const std::filesystem::path& file, Counted counted);

}  // namespace dtool::trainer
