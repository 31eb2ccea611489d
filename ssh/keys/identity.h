// Private keys from files, each read once per command however many hosts it opens.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ssh/session/libssh.h"

namespace dtool::ssh {

/// One identity file: the key, or why it cannot be used here.
struct Identity {
  KeyHandle key;        ///< of a certificate: its private key, and it
  std::string problem;  ///< empty with a key; `encrypted`, `not there`, …
};

/// What a log-in offers: a key, or a certificate with the key that it is for.
struct Credential {
  std::filesystem::path file;
  const Identity* identity = nullptr;  ///< the cache's
};

/// The public part of `key`, as the second word of a .pub file; empty if it has none.
std::string public_text(ssh_key key);

/// The public parts of keys in `files`, as public_text: of FILE.pub and FILE-cert.pub, of FILE
/// itself, which need not be readable as a private key, be it encrypted or a public one.
std::set<std::string> public_keys(const std::vector<std::filesystem::path>& files);

class IdentityCache {
 public:
  /// Reads `file` the first time it is asked for.
  const Identity& load(const std::filesystem::path& file);

  /// What is to be tried with these files, in ssh's order: the certificates that the user names,
  /// then each key; where the user names none, each key is followed by its own (`FILE-cert.pub`).
  std::vector<Credential> credentials(const std::vector<std::filesystem::path>& files,
                                      const std::vector<std::filesystem::path>& certificates);

 private:
  const Identity& load_certificate(const std::filesystem::path& file,
                                   const std::vector<std::filesystem::path>& keys);

  std::map<std::filesystem::path, Identity> identities_;
  /// By the certificate and the keys that it may be for.
  std::map<std::vector<std::filesystem::path>, Identity> certified_;
};

}  // namespace dtool::ssh
