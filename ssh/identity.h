// Private keys from files, each read once per command however many hosts it opens.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "ssh/libssh.h"

namespace dtool::ssh {

/// One identity file: the key, or why it cannot be used here.
struct Identity {
  KeyHandle key;        ///< with its certificate (`FILE-cert.pub`) where there is one
  std::string problem;  ///< empty with a key; `encrypted`, `not there`, …
};

class IdentityCache {
 public:
  /// Reads `file` the first time it is asked for.
  const Identity& load(const std::filesystem::path& file);

 private:
  std::map<std::filesystem::path, Identity> identities_;
};

}  // namespace dtool::ssh
