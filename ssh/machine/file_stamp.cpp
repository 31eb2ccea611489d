// SPDX-License-Identifier: MIT
#include "ssh/machine/file_stamp.h"

#include <fmt/format.h>

namespace dtool::ssh {

struct stat status_of(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) status = {};
  return status;
}

std::string stamp_of(const struct stat& status) {
  return fmt::format("{}:{}:{}:{}.{}", status.st_dev, status.st_ino, status.st_size,
                     status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

}  // namespace dtool::ssh
