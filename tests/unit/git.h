// SPDX-License-Identifier: MIT
// Git for tests that make checkouts, whatever the user's own git is set to.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "ssh/quote.h"

namespace dtool::tests {

/// Whether git is there. Its settings are then those of the checkouts alone.
inline bool prepare_git() {
  ::setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
  ::setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
  ::setenv("GIT_CEILING_DIRECTORIES", "/tmp", 1);
  return std::system("git --version > /dev/null 2>&1") == 0;
}

/// Runs git with these words in `folder`, which is made if it is missing.
inline void git_in(const std::filesystem::path& folder, const std::vector<std::string>& words) {
  std::filesystem::create_directories(folder);
  const std::string line =
      ssh::quote_all({"git", "-C", folder.native(), "-c", "user.name=Test", "-c",
                      "user.email=test@example.org", "-c", "init.defaultBranch=main", "-c",
                      "protocol.file.allow=always"}) +
      " " + ssh::quote_all(words) + " > /dev/null 2>&1";
  ASSERT_EQ(std::system(line.c_str()), 0) << line;
}

}  // namespace dtool::tests
