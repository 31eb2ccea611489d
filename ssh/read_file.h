// Reads a small file whole: hostfiles and the SSH client's configuration.
#pragma once

#include <filesystem>
#include <string>

namespace dtool::ssh {

/// The bytes of `file`, which may be a pipe. Throws std::system_error with errno's code, naming the
/// file.
std::string read_file(const std::filesystem::path& file);

}  // namespace dtool::ssh
