// SPDX-License-Identifier: MIT
// A private folder of this machine, below `~/.dtool/brought`, for what a new run takes from the
// hosts of an earlier one on its way to other hosts.
#pragma once

#include <filesystem>
#include <string>

namespace dtool::cli {

/// It goes with everything in it.
class BroughtFolder {
 public:
  /// Makes it, and deletes those that a killed dtool left days ago. Throws
  /// std::filesystem::filesystem_error.
  explicit BroughtFolder(const std::string& name);
  ~BroughtFolder();
  BroughtFolder(const BroughtFolder&) = delete;
  BroughtFolder& operator=(const BroughtFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace dtool::cli
