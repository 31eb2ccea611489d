// Host keys: what a host presents against what known_hosts says, and adding one after a person said
// yes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ssh/fleet.h"
#include "ssh/host.h"
#include "ssh/keys/known_hosts.h"

namespace dtool::ssh {

/// What one host presented.
struct HostKey {
  Host host;
  HostKeyState state = HostKeyState::unreachable;
  std::string type;                   ///< `ssh-ed25519`
  std::string fingerprint;            ///< `SHA256:…`, as ssh-keygen -l prints it
  std::string line;                   ///< the line for known_hosts
  std::filesystem::path known_hosts;  ///< the file that `trust` writes to
  std::string error;                  ///< why the host could not be asked, or is not trusted
  std::string hint;
};

/// Asks every host for its key without logging in; results in the hosts' order. Hosts that would be
/// put on record under one name and present different keys are doubtful.
std::vector<HostKey> scan_host_keys(const std::vector<Host>& hosts, const ConnectOptions& options);

/// Appends the lines of keys that are unknown to their known_hosts files (made 0600 in a 0700
/// folder where missing), each file written once. Throws std::runtime_error if a file cannot be
/// written.
void add_to_known_hosts(const std::vector<HostKey>& keys);

}  // namespace dtool::ssh
