// One line of a known_hosts file as sshd(8) describes it: a marker, the names that it is about, a
// key. known_hosts.cpp asks the lines about one host.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::ssh {

/// What a line says with its key.
enum class KnownHostsMarker {
  none,       ///< the host has it
  revoked,    ///< `@revoked`: nobody who has it is the host
  authority,  ///< `@cert-authority`: what it has signed is the host's
  wrong       ///< no word that is known, or several
};

/// A line that is no comment. Nothing in it is understood before it is asked for.
struct KnownHostsLine {
  std::size_t number = 0;  ///< in its file, from 1
  KnownHostsMarker marker = KnownHostsMarker::none;
  std::string names;  ///< `gpu1,10.0.0.1`, `*.lab,!login.lab`, `|1|salt|hash`
  std::string key;    ///< what stands behind them: type, base64, comment
};

/// Nothing for an empty line and a comment. As for ssh, a NUL byte ends the line; a carriage return
/// at the end is none of it.
std::optional<KnownHostsLine> read_known_hosts_line(std::string_view text, std::size_t number);

/// `|1|salt|hash`: a name's HMAC-SHA1 under the salt.
struct HashedName {
  std::array<unsigned char, 20> salt;
  std::array<unsigned char, 20> hash;
};
/// Nothing if it is no such text.
std::optional<HashedName> read_hashed_name(std::string_view names);

/// Whether a list of names in plain text is about `name`, which is in lower case: `*` any
/// characters, `?` one; a name with `!` that matches denies.
bool is_about(std::string_view names, std::string_view name);

/// A public key's bytes as they travel (RFC 4253, section 6.6), which begin with its type.
/// Nothing if `text` is no type and the base64 of such a key. Types that nobody here knows are
/// keys like all others.
std::optional<std::string> read_key_blob(std::string_view text);

/// The type with which a key's bytes begin: `ssh-ed25519`. Nothing if they do not.
std::optional<std::string_view> type_of_blob(std::string_view blob);

/// The bytes that a text in base64 stands for. Nothing if it is none, padding included.
std::optional<std::string> decode_base64(std::string_view text);

std::string to_lower(std::string_view text);

}  // namespace dtool::ssh
