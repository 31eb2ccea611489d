// SPDX-License-Identifier: MIT
// The Python packages that a requirements.txt or uv.lock wants, resolved once on this machine by
// pip: one wheel for each package, in `~/.dtool/wheels/HASH`.
#pragma once

#include <filesystem>
#include <string>

#include "cli/console.h"
#include "cli/run/package_store.h"

namespace dtool::cli {

/// The Python of hosts, for which packages are chosen.
struct HostPython {
  std::string version;    ///< `3.11`
  std::string processor;  ///< `x86_64`
  int glibc = 0;          ///< the oldest of the hosts: 36 is glibc 2.36

  bool operator==(const HostPython&) const = default;
};

/// Throws UsageError if the file is none of those kinds, or is not there.
void check_requirements(const std::filesystem::path& file);

/// The wheels, pip's own among them, and `lock.txt` for pip.
/// A file is resolved once for a Python, and again when its text has changed, or that of a file
/// that it includes. Throws UsageError if pip or uv cannot do it, with its words;
/// std::runtime_error, std::system_error if this machine cannot keep the wheels.
Packages resolve_wheels(Console& console, const std::filesystem::path& file,
                        const HostPython& python);

/// The line of a wheel in pip's lock file: `NAME==VERSION --hash=sha256:HASH`. Throws
/// std::runtime_error on a name that is no wheel's.
std::string lock_line(const std::string& wheel, const std::string& hash);

}  // namespace dtool::cli
