// What hosts lack of the programs that dtool's scripts use, and the command that installs it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/run/check.h"
#include "ssh/host/protocol.h"

namespace dtool::cli {

/// Programs that are not there or do not work, and a home where no file can be locked. Each with
/// how to mend it.
std::vector<Lack> program_lacks(const host::ProgramLacks& lacks);

/// A hint: the `dtool command` that has the host's own package manager install `programs`. Names
/// that dtool does not use are left out; where none is left, the hint is empty.
std::string install_hint(std::string_view package_manager,
                         const std::vector<std::string>& programs);

}  // namespace dtool::cli
