// SPDX-License-Identifier: MIT
// The user's home folder on this machine, for `~`.
#pragma once

#include <filesystem>
#include <string_view>

namespace dtool::ssh {

/// $HOME, else the folder from the password database, else `/`. `~/.ssh` and `~/.dtool` are in it.
std::filesystem::path home_folder();

/// `path` with home_folder() in place of a leading `~`.
std::filesystem::path from_home(std::string_view path);

}  // namespace dtool::ssh
