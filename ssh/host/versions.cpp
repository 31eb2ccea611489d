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

std::set<std::string> unused_versions(const std::string& all, std::int64_t before) {
  std::set<std::string> unused;
  for (const std::string& name : list_folder(all)) {
    struct stat found;
    const std::string path = all + "/" + name;
    if (is_hash(name) && ::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
        found.st_mtim.tv_sec < before)
      unused.insert(path);
  }
  return unused;
}

std::set<std::string> mark_used(const std::string& folder) {
  constexpr std::int64_t kUnused = 30 * 86400;
  if (!is_hash(folder.substr(folder.rfind('/') + 1))) return {};
  ::utimensat(AT_FDCWD, folder.c_str(), nullptr, 0);
  struct stat now;  // the time by the file system's clock, which may be another machine's
  if (::stat(folder.c_str(), &now) != 0) return {};
  return unused_versions(folder_of(folder), now.st_mtim.tv_sec - kUnused);
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

std::set<std::string> without_running(std::set<std::string> versions) {
  if (versions.empty()) return versions;
  for (const pid_t each : list_pids()) versions.erase(folder_of(program_of(std::to_string(each))));
  return versions;
}

void remove_version(const std::string& folder) {
  ::unlink((folder + "/dtool-host").c_str());
  ::rmdir(folder.c_str());
}

void remove_old_versions() {
  for (const std::string& folder : without_running(mark_used(folder_of(own_path()))))
    remove_version(folder);
}

}  // namespace dtool::host
