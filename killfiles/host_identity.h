// Who a host is, so that a name that leads to another host later is told from the same host after a
// reboot. ssh/host/identity.h asks a host.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dtool::killfiles {

/// What a host told of itself, and which key its SSH server showed. What is not known is empty.
struct HostIdentity {
  std::string machine_id;  ///< 32 hex digits made from /etc/machine-id, which itself is nobody's
                           ///< business
  std::string name;        ///< as `uname -n`
  std::string boot_id;     ///< of the kernel; hosts that are namespaces of one kernel share it
  std::string process_namespace;  ///< its number, which tells those apart
  std::string host_key;           ///< `ssh-ed25519 SHA256:…`, as the launcher saw it

  bool operator==(const HostIdentity&) const = default;

  bool is_known() const { return !boot_id.empty(); }
};

/// What was recorded of a host, beside what is found now.
enum class Likeness {
  same,      ///< and not rebooted: it sees every process that it saw then
  rebooted,  ///< the same host, and no process of then is left
  another,   ///< or one that cannot be told from another
  unknown,   ///< nothing was recorded
};

/// Within one boot and process namespace a host is the same whatever else changed. Over a reboot
/// machine id and name must be the same, and the key where both showed one of the same type; where
/// one has no machine id, the keys must be known.
Likeness compare(const HostIdentity& recorded, const HostIdentity& found);

/// Four words in one line, `-` for what is not known: machine id, name, boot id, process namespace.
/// Nothing if a word is not of its form: the line may come from a host.
std::optional<HostIdentity> parse_identity(std::string_view line);

/// The same line; empty if nothing is known. The host key is not in it.
std::string to_line(const HostIdentity& identity);

/// Whether each part is empty or of its form.
bool is_well_formed(const HostIdentity& identity);

/// `login2 (machine 3d1219c7, boot 5f0c91aa, ssh-ed25519 SHA256:…)`, for messages.
std::string describe(const HostIdentity& identity);

}  // namespace dtool::killfiles
