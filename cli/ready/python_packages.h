// SPDX-License-Identifier: MIT
// The Python packages that a requirements.txt or uv.lock wants, chosen on this machine by uv for
// the hosts' Python, and laid out in `~/.dtool/wheels/HASH` as a virtual environment has them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/ready/package_store.h"

namespace dtool::cli {

/// The Python of hosts, for which packages are chosen.
struct HostPython {
  std::string version;    ///< `3.11.2`
  std::string processor;  ///< `x86_64`
  int glibc = 0;          ///< the oldest of the hosts: 36 is glibc 2.36

  bool operator==(const HostPython&) const = default;
};

/// The hosts' own packages: whether an environment leads to them as well.
enum class OwnPackages { hidden, seen };

/// What `--environment` and the flags beside it want.
struct PackageNeeds {
  std::filesystem::path file;
  std::vector<std::string> extras;  ///< of the project of a uv.lock
  std::vector<std::string> groups;  ///< likewise, of its dependency groups
  OwnPackages own_packages = OwnPackages::hidden;
  std::vector<std::string> held = {};  ///< `NAME==VERSION`, which are there already
  bool keeps_held = false;             ///< nothing else may want another version of those
  std::filesystem::path origin = {};   ///< what messages name, and where names in `file` begin
};

/// Throws UsageError if the file is none of those kinds, or is not there, or has no extras.
void check_requirements(const PackageNeeds& needs);

/// `lib/python3.11/site-packages`, `bin` and the like, and `lock.txt` with names and versions.
/// The file is resolved each time; packages that are the same as before are not installed again.
/// What was chosen for it stays while the file and the index allow it. Throws UsageError if uv or
/// pip cannot do it, with its words; std::runtime_error, std::system_error if this machine cannot
/// keep the packages.
Packages resolve_python(Console& console, const PackageNeeds& needs, const HostPython& python);

}  // namespace dtool::cli
