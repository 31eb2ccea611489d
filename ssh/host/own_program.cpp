#include "ssh/host/own_program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <set>

#include "ssh/host/files.h"
#include "ssh/host/process_table.h"

namespace dtool::host {
namespace {

/// The program that a process runs; empty if that may not be seen.
std::string program_of(const std::string& process) {
  std::array<char, 4096> link;
  const ssize_t size = ::readlink(("/proc/" + process + "/exe").c_str(), link.data(), link.size());
  std::string path(link.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  // Another host with the same home folder has just brought the same program.
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

bool is_hash(const std::string& name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == name.npos;
}

}  // namespace

std::string own_path() {
  return program_of("self");
}

void remove_old_versions() {
  constexpr time_t kUnused = 30 * 86400;
  const std::string own = folder_of(own_path());
  if (!is_hash(own.substr(own.rfind('/') + 1))) return;
  ::utimensat(AT_FDCWD, own.c_str(), nullptr, 0);
  struct stat now;  // by the file system's clock, which may be another machine's
  if (::stat(own.c_str(), &now) != 0) return;
  std::set<std::string> old;
  const std::string all = folder_of(own);
  for (const std::string& name : list_folder(all)) {
    struct stat found;
    const std::string folder = all + "/" + name;
    if (is_hash(name) && ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
        found.st_mtim.tv_sec < now.st_mtim.tv_sec - kUnused)
      old.insert(folder);
  }
  if (old.empty()) return;
  for (const pid_t each : list_pids()) old.erase(folder_of(program_of(std::to_string(each))));
  for (const std::string& folder : old) {
    ::unlink((folder + "/dtool-host").c_str());
    ::rmdir(folder.c_str());
  }
}

}  // namespace dtool::host
