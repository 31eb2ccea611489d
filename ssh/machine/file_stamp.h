// SPDX-License-Identifier: MIT
// Tells whether a file has changed: known_hosts files and keys, which outlive a command if its
// connections are kept.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace dtool::ssh {

/// stat(2) of `file`, following links; all zeros if there is no such file.
struct stat status_of(const std::filesystem::path& file);

/// A text that changes with the file and with its replacement: device, inode, size, and the time of
/// the last change of any kind (ctime), which cannot be set back.
std::string stamp_of(const struct stat& status);

}  // namespace dtool::ssh
