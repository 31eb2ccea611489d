// SPDX-License-Identifier: MIT
// Environments that dtool builds on hosts from packages that it sent: of Python's packages in
// `~/.dtool/environments/HASH/venv`, of conda's packages in `~/.dtool/environments/HASH/conda`. No
// host needs a network, pip or conda.
#pragma once

#include <string>
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

// The list of an environment's files, written when the environment is whole. Each run that is to
// use the environment holds it against its list first: what a run, a person or a lost disk has
// changed since is not what was asked for.

/// Writes the list of all files below `folder` to the file `list`, outside of it, once all of them
/// are on the disk: the list says that the environment is whole. Throws std::runtime_error.
void list_environment(const std::string& folder, const std::string& list);

/// How the folder differs from its list, such as `lib/six.py was changed`, by size, time, mode and
/// the links' targets; a time that was set back shows, too. Empty: it does not differ. Python's
/// `__pycache__` folders may differ: Python itself holds what is there against the files beside it.
/// `there is no list of its files`: it was not built to its end.
std::string find_environment_change(const std::string& folder, const std::string& list);

}  // namespace dtool::host
