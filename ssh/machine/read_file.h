// Reads a small file whole: hostfiles, the SSH client's configuration, what the kernel tells.
#pragma once

#include <filesystem>
#include <string>

namespace dtool::ssh {

/// The bytes of `file`, which may be a pipe. Throws std::system_error with errno's code, naming the
/// file.
std::string read_file(const std::filesystem::path& file);

/// A number of this boot of this machine: a later boot has another.
std::string boot_id();

}  // namespace dtool::ssh
