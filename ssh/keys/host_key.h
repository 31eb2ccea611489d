// SPDX-License-Identifier: MIT
// Host keys: compares a host's key with known_hosts, and adds it after the user said yes.
#pragma once

#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "ssh/fleet.h"
#include "ssh/host.h"
#include "ssh/keys/known_hosts.h"

namespace dtool::ssh {

/// The key that one host showed.
struct HostKey {
  Host host;
  HostKeyState state = HostKeyState::unreachable;
  std::string type;                   ///< `ssh-ed25519`
  std::string fingerprint;            ///< `SHA256:…`, as ssh-keygen -l prints it
  std::string line;                   ///< the line for known_hosts
  std::filesystem::path known_hosts;  ///< the file that `trust` writes to
  std::string error;                  ///< why the host could not be asked or is not trusted
  std::string hint;
};

/// Asks every host for its key without logging in; results in the hosts' order. If several hosts
/// would get the same name in known_hosts but show different keys, they are doubtful.
std::vector<HostKey> scan_host_keys(const std::vector<Host>& hosts, const ConnectOptions& options);

/// By what two versions of the endpoint's known_hosts files can be told apart. Empty if one was
/// written so lately that the next write could bear the same time.
std::string known_hosts_stamp(const Endpoint& endpoint, std::time_t now);

/// How an unknown key becomes known where that file takes new keys; it may take none.
std::string hint_at_trust(const std::filesystem::path& known_hosts);

/// Appends the lines of unknown keys to their known_hosts files, writing each file once. A missing
/// file is made 0600, its folder 0700. Throws std::runtime_error if a file cannot be written.
void add_to_known_hosts(const std::vector<HostKey>& keys);

}  // namespace dtool::ssh
