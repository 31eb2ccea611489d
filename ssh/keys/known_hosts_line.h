// SPDX-License-Identifier: MIT
// One line of a known_hosts file as in sshd(8): a marker, host names, a key. known_hosts.cpp finds
// the lines about one host.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::ssh {

/// What a line says about its key.
enum class KnownHostsMarker {
  none,       ///< it is the host's key
  revoked,    ///< `@revoked`: no host with this key is trusted
  authority,  ///< `@cert-authority`: certificates that it signed are the host's
  wrong       ///< an unknown word, or several
};

/// A line that is not a comment. Its parts are interpreted only when asked for.
struct KnownHostsLine {
  std::size_t number = 0;  ///< in its file, from 1
  KnownHostsMarker marker = KnownHostsMarker::none;
  std::string names;  ///< `gpu1,10.0.0.1`, `*.lab,!login.lab`, `|1|salt|hash`
  std::string key;    ///< the rest of the line: type, base64, comment
};

/// Nothing for an empty line and a comment. As in ssh, a NUL byte ends the line, and a carriage
/// return at the end is dropped.
std::optional<KnownHostsLine> read_known_hosts_line(std::string_view text, std::size_t number);

/// `|1|salt|hash`: a name's HMAC-SHA1 under the salt.
struct HashedName {
  std::array<unsigned char, 20> salt;
  std::array<unsigned char, 20> hash;
};
/// Nothing if the text has another form.
std::optional<HashedName> read_hashed_name(std::string_view names);

/// Whether a plain list of names covers `name` (lower case): `*` stands for any characters, `?` for
/// one; a matching name with `!` excludes the host.
bool is_about(std::string_view names, std::string_view name);

/// The bytes of a public key as sent over the wire (RFC 4253, section 6.6); they begin with its
/// type. Nothing if `text` is not a type and the base64 of such a key. Unknown types are accepted.
std::optional<std::string> read_key_blob(std::string_view text);

/// The type at the beginning of a key's bytes: `ssh-ed25519`. Nothing if there is none.
std::optional<std::string_view> type_of_blob(std::string_view blob);

/// Decodes base64. Nothing if the text is empty or malformed, padding included.
std::optional<std::string> decode_base64(std::string_view text);

std::string to_lower(std::string_view text);

}  // namespace dtool::ssh
