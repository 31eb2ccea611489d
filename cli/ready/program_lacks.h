// SPDX-License-Identifier: MIT
// What hosts lack of the programs that dtool's scripts use, and a command that installs them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/ready/check.h"
#include "ssh/wire/check.h"

namespace dtool::cli {

/// Programs that are missing or do not work, and a home folder in which no file can be locked; each
/// with a hint at how to mend it.
std::vector<Lack> program_lacks(const host::ProgramLacks& lacks);

/// A hint: the `dtool command` that makes the host's own package manager install `programs`.
/// Programs that dtool does not use are left out; if none remains, the hint is empty.
std::string install_hint(std::string_view package_manager,
                         const std::vector<std::string>& programs);

}  // namespace dtool::cli
