// SPDX-License-Identifier: MIT
// Reads a small file whole: hostfiles, the SSH client's configuration, files of the kernel.
#pragma once

#include <filesystem>
#include <string>

namespace dtool::ssh {

/// The bytes of `file`, which may be a pipe. Throws std::system_error with errno's code, naming the
/// file.
std::string read_file(const std::filesystem::path& file);

/// The kernel's id of this boot, which changes with each boot; empty if it cannot be read.
std::string boot_id();

}  // namespace dtool::ssh
