// Tells whether a file is still the one that it was: of known_hosts files and keys, which outlive a
// command where its connections are kept.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace dtool::ssh {

/// What stat(2) tells of `file`, links followed; all zeros if there is none.
struct stat status_of(const std::filesystem::path& file);

/// What changes whenever a file does, or another takes its place: device, inode, size, and the time
/// of its last change of any kind (ctime), which nobody sets back.
std::string stamp_of(const struct stat& status);

}  // namespace dtool::ssh
