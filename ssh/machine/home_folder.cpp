// SPDX-License-Identifier: MIT
#include "ssh/machine/home_folder.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace dtool::ssh {

std::filesystem::path home_folder() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return home;
  const passwd* entry = ::getpwuid(::getuid());
  return entry == nullptr ? "/" : entry->pw_dir;
}

std::filesystem::path from_home(std::string_view path) {
  if (path == "~") return home_folder();
  return path.starts_with("~/") ? home_folder() / path.substr(2) : std::filesystem::path(path);
}

}  // namespace dtool::ssh
