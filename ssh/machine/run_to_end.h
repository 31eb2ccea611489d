// SPDX-License-Identifier: MIT
// A program on this machine that is run for what it says, outside any event loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dtool::ssh {

/// What a program wrote until it ended.
struct Written {
  int exit_code = -1;  ///< 128 + signal where a signal ended it
  std::string out;
  std::string err;
};

/// Runs a program, found by PATH, with nothing to read, and waits here until it has ended. It gets
/// this process's variables but those that begin with one of `left_out`, and `environment`
/// (`NAME=value`). Nothing where it is not installed. Throws std::runtime_error where it cannot be
/// started.
std::optional<Written> run_to_end(std::vector<std::string> arguments,
                                  std::vector<std::string> environment = {},
                                  std::vector<std::string> left_out = {});

}  // namespace dtool::ssh
