// SPDX-License-Identifier: MIT
// Whether bash can read a script, and what one prints; for tests of scripts that dtool writes.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace dtool::tests {

/// What a shell command prints, both streams, with `exit code N` behind it where that is not 0.
inline std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(("{ " + command + "\n} 2>&1").c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  std::string output;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), count);
  }
  const int status = ::pclose(pipe);
  if (status != 0) output += "exit code " + std::to_string(WEXITSTATUS(status)) + "\n";
  return output;
}

/// bash's complaints about the script's syntax; empty where there is none.
inline std::string syntax_fault(const std::string& script) {
  const TemporaryFolder folder;
  return output_of("bash -n " + folder.write("script", script).string());
}

/// What the script prints in bash, in a folder of its own.
inline std::string run_bash(const std::string& script) {
  const TemporaryFolder folder;
  folder.write("script", script);
  return output_of("cd " + folder.path().string() + " && bash script");
}

}  // namespace dtool::tests
