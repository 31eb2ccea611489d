// SPDX-License-Identifier: MIT
// The conda packages that an environment.yml wants, resolved once on this machine by py-rattler,
// which needs no conda: one file for each package, in `~/.dtool/conda/HASH`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cli/console.h"
#include "cli/ready/python_packages.h"

namespace dtool::cli {

/// What all hosts have, for which packages are chosen.
struct CondaHosts {
  HostPython python;   ///< the Python that installs the packages; the oldest of the hosts
  std::string kernel;  ///< `5.10`, the oldest
  /// The CUDA version that all drivers can do: 12040 is CUDA 12.4; 0: a host has no driver.
  std::int64_t cuda = 0;
};

/// Python that py-rattler runs on: 3.10 or later.
inline constexpr int kOldestCondaPython = 10;

/// By its name: `*.yml` or `*.yaml`.
bool is_conda_file(const std::filesystem::path& file);

/// Besides the packages there are `lock.txt`, py-rattler's wheel and the script that installs them.
/// A file is resolved once for such hosts, and again when its text has changed; each time if a
/// channel is a folder. Throws UsageError if py-rattler cannot be had or cannot do it, with its
/// words; std::runtime_error, std::system_error if this machine cannot keep the packages.
Packages resolve_conda(Console& console, const std::filesystem::path& file,
                       const CondaHosts& hosts);

}  // namespace dtool::cli
