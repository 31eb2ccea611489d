// Private keys from files, each read once per command however many hosts it opens.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ssh/libssh.h"

namespace dtool::ssh {

/// One identity file: the key, or why it cannot be used here.
struct Identity {
  KeyHandle key;        ///< with its certificate (`FILE-cert.pub`) where there is one
  std::string problem;  ///< empty with a key; `encrypted`, `not there`, …
};

/// The public part of `key`, as the second word of a .pub file; empty where it has none.
std::string public_text(ssh_key key);

/// The public parts of keys in `files`, as public_text: of FILE.pub and FILE-cert.pub, of FILE
/// itself, which need not be readable as a private key, be it encrypted or a public one.
std::set<std::string> public_keys(const std::vector<std::filesystem::path>& files);

class IdentityCache {
 public:
  /// Reads `file` the first time it is asked for.
  const Identity& load(const std::filesystem::path& file);

 private:
  std::map<std::filesystem::path, Identity> identities_;
};

}  // namespace dtool::ssh
