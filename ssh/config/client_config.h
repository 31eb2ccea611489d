// SPDX-License-Identifier: MIT
// The user's SSH client configuration, read once per command and asked once per host.
//
// libssh has its own reader, but it asks the password database for the home folder, hides
// ConnectTimeout, and turns ProxyJump into a call of the ssh program, which checks host keys in its
// own way.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ssh/config/config_block.h"
#include "ssh/host.h"
#include "ssh/host_error.h"

namespace dtool::ssh {

/// Which addresses a name may lead to.
enum class AddressFamily { any, inet, inet6 };

/// How one host is reached, all settings resolved.
struct Endpoint {
  std::string named;     ///< the name by which the user calls it
  std::string address;   ///< name or address to connect to (HostName)
  std::string key_name;  ///< name to look up in known_hosts (HostKeyAlias, else address)
  /// The port to look up with that name: 22 for an alias, which has no port.
  std::uint16_t key_port = 22;
  std::string user;
  std::uint16_t port = 22;
  std::vector<std::filesystem::path>
      identity_files;  ///< named by the user, in order; may not exist
  std::vector<std::filesystem::path>
      certificate_files;  ///< CertificateFile, in order; none: FILE-cert.pub of each key
  bool only_named_identities = false;  ///< IdentitiesOnly
  std::filesystem::path known_hosts;   ///< first of UserKnownHostsFile; new keys are added here
  std::vector<std::filesystem::path>
      known_hosts_files;           ///< all files that are asked: UserKnownHostsFile's before
                                   ///< GlobalKnownHostsFile's
  std::vector<std::string> jumps;  ///< ProxyJump, nearest first, each `[user@]host[:port]`
  std::optional<std::string> proxy_command;  ///< ProxyCommand, which only `ssh` runs
  std::string needs_program;                 ///< a setting that only `ssh` supports; or empty
  std::string control_path;    ///< ControlPath as written, with its tokens; empty: none
  std::string identity_agent;  ///< socket path (IdentityAgent, else $SSH_AUTH_SOCK); empty: none
  std::optional<std::chrono::milliseconds> connect_timeout;
  AddressFamily address_family = AddressFamily::any;
  /// Settings of the encryption that libssh may carry, by keyword in lower case: `ciphers` …
  std::vector<std::pair<std::string, std::string>> encryption;
};

/// A parsed configuration.
class ClientConfig {
 public:
  /// Settings given by hand (`-o Key=Value`, `-i`, `-p`, …); they win over every file.
  using Overrides = std::vector<std::pair<std::string, std::string>>;

  /// Reads `user_file` (must exist if given; default `$HOME/.ssh/config`, which may be missing) and
  /// /etc/ssh/ssh_config, with Include. As with ssh -F, a given file is read alone, and `none`
  /// means no file at all. Throws std::invalid_argument with `file:line:` on a line that cannot be
  /// read. Keywords that dtool does not use are skipped.
  static ClientConfig read(const std::optional<std::filesystem::path>& user_file,
                           Overrides overrides);

  /// Resolves `host`: Host and Match (all, host, originalhost, user, localuser) blocks, first value
  /// wins. Tokens (`%h %n %p %r %u %i %d %%`), `${NAME}` and a leading `~` ($HOME) are expanded.
  /// User and port in the host's own name win over everything. Blocks of `Match exec`, `final` and
  /// the like never hold. The list of jumps begins with the jumps that the first jump host itself
  /// needs. It ends before the host itself, so that `Host *` may name a jump host for all.
  Endpoint resolve(const Host& host) const;

  /// As resolve, for a jump host: settings given by hand for the destination (HostName,
  /// HostKeyAlias, User, Port, ProxyJump, ProxyCommand) do not apply to it.
  Endpoint resolve_jump(const Host& host) const;

 private:
  enum class Role { destination, jump };
  Endpoint resolve_as(const Host& host, Role role, int depth) const;

  std::vector<ConfigBlock> blocks_;  ///< the blocks in the order in which they are asked
};

/// The files that are tried if the user names none.
std::vector<std::filesystem::path> usual_identities();

/// The failure of a host that needs `ssh` when `ssh` must not be used.
HostError needs_program(const Endpoint& endpoint);

}  // namespace dtool::ssh
