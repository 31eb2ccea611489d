// SPDX-License-Identifier: MIT
#include "ssh/host/own_program.h"

#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/versions.h"

namespace dtool::host {
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
