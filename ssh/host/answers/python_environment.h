// SPDX-License-Identifier: MIT
// Environments that dtool builds on hosts from packages that it sent: of Python's packages in
// `~/.dtool/environments/HASH/venv`, of conda's packages in `~/.dtool/environments/HASH/conda`. No
// host needs a network, pip or conda.
#pragma once

#include <string_view>

#include "ssh/wire/check.h"

namespace dtool::host {

/// Among conda's packages: the script that installs them (cli/ready/scripts/install_conda.py).
inline constexpr const char* kCondaInstaller = "install_conda.py";

/// The part of a PythonReply that is about python3 and what packages are chosen for.
PythonReply look_at_python();

/// The 11 of `3.11.2`; 0 if it is no such version.
int minor_of_python(std::string_view version);

/// Answers, and builds the environment if that is asked for. Throws BadMessage on a name that is no
/// hash.
PythonReply ready_python(const PythonRequest& request);

}  // namespace dtool::host
