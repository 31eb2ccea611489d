// SPDX-License-Identifier: MIT
// What known_hosts files say about the key that a host showed. dtool reaches its own verdict, the
// same as ssh's, but refuses a host if a line cannot be read; ssh would skip that line.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/config/client_config.h"

namespace dtool::ssh {

// One line of a known_hosts file as in sshd(8): a marker, host names, a key. known_hosts.cpp finds
// the lines about one host.

/// What a line says about its key.
enum class KnownHostsMarker {
  none,       ///< it is the host's key
  revoked,    ///< `@revoked`: no host with this key is trusted
  authority,  ///< `@cert-authority`: certificates that it signed are the host's
  wrong       ///< an unknown word, or several
};

/// A line that is not a comment. Its parts are interpreted only when asked for.
struct KnownHostsLine {
  std::size_t number = 0;  ///< the line's number in its file, counted from 1
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

enum class HostKeyState {
  known,
  unknown,    ///< no line is about the host
  changed,    ///< other keys of the host are on record, of any type
  revoked,    ///< marked with `@revoked`
  certified,  ///< only a certificate authority is on record, and libssh cannot ask for certificates
  doubtful,   ///< a line that may be about the host cannot be read
  unreachable  ///< the host showed no key
};

/// The state of one key, and the line that decided.
struct KeyVerdict {
  HostKeyState state = HostKeyState::unknown;
  std::filesystem::path file = {};  ///< empty: no line decided
  /// The line's number, counted from 1; 0: the whole file, which cannot be read.
  std::size_t line = 0;
};

/// `FILE:LINE` of the line that decided.
std::string place_of(const KeyVerdict& verdict);

/// One known_hosts file, read again when it has changed. A missing file has no lines, nor has
/// /dev/null or a folder. Any other irregular file counts as unreadable.
class KnownHostsFile {
 public:
  explicit KnownHostsFile(std::filesystem::path file);
  ~KnownHostsFile();
  KnownHostsFile(const KnownHostsFile&) = delete;
  KnownHostsFile& operator=(const KnownHostsFile&) = delete;

  /// All lines about that name (lower case, may be `[gpu1]:2222`), in the file's order. Lines whose
  /// names cannot be read are about every host. Valid until the next call.
  std::vector<const KnownHostsLine*> lines_about(const std::string& name);

 private:
  struct Lines;
  void read_if_changed();

  std::filesystem::path file_;
  std::unique_ptr<Lines> lines_;
};

/// All known_hosts files in use, by path.
class KnownHosts {
 public:
  /// What the host's known_hosts files say of the key with these bytes.
  KeyVerdict judge(const Endpoint& endpoint, std::string_view blob);

  /// The types of the host's keys that are on record and not revoked, in the files' order. A server
  /// with several keys is asked for one of those.
  std::vector<std::string> types_of(const Endpoint& endpoint);

 private:
  struct Findings;
  Findings look(const Endpoint& endpoint, const std::string& name, std::string_view blob);

  std::map<std::filesystem::path, KnownHostsFile> files_;
};

/// The kinds of keys to ask a server for, best first, but those on record before all others.
/// Otherwise a server that got an additional key would look like a stranger.
std::vector<std::string> key_algorithms(const std::vector<std::string>& types_on_record);

/// The name that known_hosts gets for a key of the host: `gpu1`, `[gpu1]:2222`.
std::string name_on_record(const Endpoint& endpoint);

}  // namespace dtool::ssh
