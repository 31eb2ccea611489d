// SPDX-License-Identifier: MIT
// The key that a host shows, held against known_hosts.
#pragma once

#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>

#include "ssh/host.h"
#include "ssh/host_error.h"
#include "ssh/keys/known_hosts.h"

namespace dtool::ssh {

class Session;

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

/// By what two versions of the endpoint's known_hosts files can be told apart. Empty if one was
/// written so lately that the next write could bear the same time.
std::string known_hosts_stamp(const Endpoint& endpoint, std::time_t now);

/// What known_hosts says of the key that the session's server presented.
KeyVerdict verdict_on(const Session& session, KnownHosts& known_hosts);

/// Fills in the type, the fingerprint and the line of the key that the server presented; nothing if
/// it presented none.
void describe_key(const Session& session, HostKey& report);

/// The failure for a key with that verdict, which is not `known`.
HostError not_trusted(const Endpoint& endpoint, const HostKey& presented,
                      const KeyVerdict& verdict);

/// Whether that file can hold no key: /dev/null.
bool is_no_file(const std::filesystem::path& known_hosts);
inline constexpr std::string_view kKeepsNoKeys =
    "the SSH configuration keeps no host keys (UserKnownHostsFile /dev/null)";
/// The first value that ssh and dtool find counts.
inline constexpr std::string_view kHowToKeepKeys =
    "name the file that counts: UserKnownHostsFile ~/.ssh/known_hosts above that line in the SSH "
    "configuration, or in each command --ssh_cmd 'ssh -o UserKnownHostsFile=~/.ssh/known_hosts'";

/// How an unknown key becomes known where that file takes new keys; it may take none.
std::string hint_at_trust(const std::filesystem::path& known_hosts);

}  // namespace dtool::ssh
