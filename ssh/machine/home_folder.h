// The user's own folder on this machine, which `~` stands for.
#pragma once

#include <filesystem>
#include <string_view>

namespace dtool::ssh {

/// $HOME, else the password database's folder; `/` where neither is. The folder of `~/.ssh` and
/// `~/.dtool`.
std::filesystem::path home_folder();

/// `path` with home_folder() in the place of a `~` that is all of it or its first part.
std::filesystem::path from_home(std::string_view path);

}  // namespace dtool::ssh
