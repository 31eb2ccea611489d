// SPDX-License-Identifier: MIT
// The list of an environment's files, written when the environment is whole. Each run that is to
// use the environment holds it against its list first: what a run, a person or a lost disk has
// changed since is not what was asked for.
#pragma once

#include <string>

namespace dtool::host {

/// Writes the list of all files below `folder` to the file `list`, outside of it, once all of them
/// are on the disk: the list says that the environment is whole. Throws std::runtime_error.
void list_environment(const std::string& folder, const std::string& list);

/// How the folder differs from its list, such as `lib/six.py was changed`, by size, time, mode and
/// the links' targets; a time that was set back shows, too. Empty: it does not differ. Python's
/// `__pycache__` folders may differ: Python itself holds what is there against the files beside it.
/// `there is no list of its files`: it was not built to its end.
std::string find_environment_change(const std::string& folder, const std::string& list);

}  // namespace dtool::host
