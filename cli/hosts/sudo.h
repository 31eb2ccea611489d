// SPDX-License-Identifier: MIT
// `dtool command --sudo`: a command as root on every host, with one password for all that ask.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "ssh/remote.h"

namespace dtool::cli {

class Sudo {
 public:
  Sudo() = default;
  ~Sudo();
  Sudo(const Sudo&) = delete;
  Sudo& operator=(const Sudo&) = delete;

  /// Looks which hosts ask for a password, asks the user for it, and tries it on one of them, so
  /// that a wrong one is tried once. Returns the results of hosts where the command cannot be run.
  /// Throws UsageError if the password is wrong, or nobody can be asked for it.
  std::vector<std::optional<ssh::HostResult>> make_ready(ssh::Remote& remote);

  /// `line` as root, by sh. Its standard input is what follows `Command::input`.
  ssh::Command command(std::size_t host, const std::string& line) const;

 private:
  std::string password_;
  std::vector<bool> asks_;  ///< for each host
};

}  // namespace dtool::cli
