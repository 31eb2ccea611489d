// SPDX-License-Identifier: MIT
// Copies of files of a host, for the folders in which runs work.
#pragma once

#include <sys/stat.h>

#include <string>

#include "sync/host/inside.h"

namespace dtool::host {

/// Copies a file with its mode and time. Where the file system can, both share their bytes until
/// one is changed (FICLONE). Returns what the kernel knew of the source when it was read; that
/// differs from before if the source was changed meanwhile. Throws std::runtime_error.
struct stat copy_file(Inside& from, Inside& to, const std::string& name);

/// Tells whether a file is the one that was put there: `inode size time`. Unlike a stamp it stays
/// as it is when another name of the file is made.
std::string identity_of_copy(const struct stat& file);

}  // namespace dtool::host
