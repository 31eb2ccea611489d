// SPDX-License-Identifier: MIT
// Copies of files of a host, for the folders in which runs work.
#pragma once

#include <sys/stat.h>

#include <string>

#include "ssh/host/tree/inside.h"

namespace dtool::host {

/// What the kernel knows of both files after copying. `source` differs from before if the file was
/// changed meanwhile.
struct Copied {
  struct stat source;
  struct stat copy;
};

/// Copies a file with its permissions and time; `as` is its name in `to` if that is another one.
/// Where the file system can, both share their bytes until one is changed. Throws
/// std::runtime_error.
Copied copy_file(Inside& from, Inside& to, const std::string& name, const std::string& as = "");

/// Whether both files have the same bytes from where they are to be read next. Throws
/// std::runtime_error.
bool have_same_bytes(const Descriptor& one, const Descriptor& other);

/// Tells whether a file is the one that was put there: `inode size time`. Unlike a stamp it stays
/// as it is when another name of the file is made.
std::string identity_of_copy(const struct stat& file);

}  // namespace dtool::host
