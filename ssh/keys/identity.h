// SPDX-License-Identifier: MIT
// Private keys from files. Each file is read once per command, however many hosts it opens.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ssh/keys/libssh.h"

namespace dtool::ssh {

/// One identity file: the key, or why it cannot be used here.
struct Identity {
  KeyHandle key;        ///< the key; for a certificate: its private key with the certificate
  std::string problem;  ///< empty if there is a key; `encrypted`, `not there`, …
};

/// What a login offers: a key, or a certificate with its key.
struct Credential {
  std::filesystem::path file;
  const Identity* identity = nullptr;  ///< owned by the cache
};

/// The public part of `key`, as the second word of a .pub file; empty if it has none.
std::string public_text(ssh_key key);

/// The public parts of the keys in `files`, as public_text: from FILE.pub and FILE-cert.pub, and
/// from FILE itself, which may be encrypted or a public key.
std::set<std::string> public_keys(const std::vector<std::filesystem::path>& files);

class IdentityCache {
 public:
  /// Reads `file` the first time it is asked for.
  const Identity& load(const std::filesystem::path& file);

  /// What to try with these files, in ssh's order: the certificates that the user names, then each
  /// key. If the user names no certificate, each key is followed by its own (`FILE-cert.pub`).
  std::vector<Credential> credentials(const std::vector<std::filesystem::path>& files,
                                      const std::vector<std::filesystem::path>& certificates);

 private:
  const Identity& load_certificate(const std::filesystem::path& file,
                                   const std::vector<std::filesystem::path>& keys);

  std::map<std::filesystem::path, Identity> identities_;
  /// keyed by the certificate and its possible keys
  std::map<std::vector<std::filesystem::path>, Identity> certified_;
};

}  // namespace dtool::ssh
