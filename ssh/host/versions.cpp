// SPDX-License-Identifier: MIT
#include "ssh/host/versions.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "ssh/host/files.h"
#include "ssh/host/process_table.h"

namespace dtool::host {

bool is_hash(const std::string& name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == name.npos;
}

std::set<std::string> mark_used(const std::string& folder) {
  constexpr time_t kUnused = 30 * 86400;
  std::set<std::string> old;
  if (!is_hash(folder.substr(folder.rfind('/') + 1))) return old;
  ::utimensat(AT_FDCWD, folder.c_str(), nullptr, 0);
  struct stat now;  // the time by the file system's clock, which may be another machine's
  if (::stat(folder.c_str(), &now) != 0) return old;
  const std::string all = folder_of(folder);
  for (const std::string& name : list_folder(all)) {
    struct stat found;
    const std::string other = all + "/" + name;
    if (is_hash(name) && ::lstat(other.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
        found.st_mtim.tv_sec < now.st_mtim.tv_sec - kUnused)
      old.insert(other);
  }
  return old;
}

namespace {

/// The program that a process runs; empty if that may not be seen.
std::string program_of(const std::string& process) {
  std::error_code hidden;
  std::string path = std::filesystem::read_symlink("/proc/" + process + "/exe", hidden);
  // Another host with the same home folder has just brought the same program.
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

}  // namespace

std::string own_path() {
  return program_of("self");
}

void remove_old_versions() {
  std::set<std::string> old = mark_used(folder_of(own_path()));
  if (old.empty()) return;
  for (const pid_t each : list_pids()) old.erase(folder_of(program_of(std::to_string(each))));
  for (const std::string& folder : old) {
    ::unlink((folder + "/dtool-host").c_str());
    ::rmdir(folder.c_str());
  }
}

}  // namespace dtool::host
