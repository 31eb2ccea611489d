// SPDX-License-Identifier: MIT
#include "cli/run/brought_folder.h"

#include <chrono>
#include <system_error>

#include "ssh/machine/home_folder.h"

namespace dtool::cli {
namespace {

namespace fs = std::filesystem;

fs::path all() {
  return ssh::home_folder() / ".dtool" / "brought";
}

/// Those of a dtool that was killed.
void remove_forgotten() {
  std::error_code ignored;
  for (const auto& each : fs::directory_iterator(all(), ignored)) {
    if (each.last_write_time(ignored) < fs::file_time_type::clock::now() - std::chrono::days(2))
      fs::remove_all(each.path(), ignored);
  }
}

}  // namespace

BroughtFolder::BroughtFolder(const std::string& name) : path_(all() / name) {
  remove_forgotten();
  fs::create_directories(path_);
  fs::permissions(all(), fs::perms::owner_all);
}

BroughtFolder::~BroughtFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace dtool::cli
