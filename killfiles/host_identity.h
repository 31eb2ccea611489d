// SPDX-License-Identifier: MIT
// Who a host is. A name that leads to another host later is told apart from the same host after a
// reboot. ssh/host/identity.h asks a host.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dtool::killfiles {

/// What a host said about itself, and the key that its SSH server showed. Unknown parts are empty.
struct HostIdentity {
  std::string machine_id;  ///< 32 hex digits derived from /etc/machine-id, which itself stays
                           ///< private
  std::string name;        ///< as `uname -n`
  std::string boot_id;     ///< of the kernel; hosts that are namespaces of one kernel share it
  std::string process_namespace;  ///< its number; tells hosts of one kernel apart
  std::string host_key;           ///< `ssh-ed25519 SHA256:…`, as the launcher saw it

  bool operator==(const HostIdentity&) const = default;

  bool is_known() const { return !boot_id.empty(); }
};

/// The recorded host compared with the host that is found now.
enum class Likeness {
  same,      ///< nothing shows a reboot: it sees every process that it saw then
  rebooted,  ///< the same host, but no process of then is left
  another,   ///< another host, or one that cannot be told from another
  unknown,   ///< nothing was recorded
};

/// Within one boot and process namespace the host is the same, whatever else changed. Over a
/// reboot, machine id and name must be equal, and so must the keys if both have the same type.
/// Without a machine id the keys must be known.
Likeness compare(const HostIdentity& recorded, const HostIdentity& found);

/// Four words in one line: machine id, name, boot id, process namespace; `-` for an unknown one.
/// Nothing if a word is malformed: the line may come from a host.
std::optional<HostIdentity> parse_identity(std::string_view line);

/// The same line, without the host key; empty if nothing is known.
std::string to_line(const HostIdentity& identity);

/// Whether each part is empty or well-formed.
bool is_well_formed(const HostIdentity& identity);

/// `login2 (machine 3d1219c7, boot 5f0c91aa, ssh-ed25519 SHA256:…)`, for messages.
std::string describe(const HostIdentity& identity);

}  // namespace dtool::killfiles
