// SPDX-License-Identifier: MIT
// What known_hosts files say about the key that a host showed. dtool reaches its own verdict, the
// same as ssh's, but refuses a host if a line cannot be read; ssh would skip that line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/config/client_config.h"
#include "ssh/keys/known_hosts_line.h"

namespace dtool::ssh {

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
  std::size_t line = 0;             ///< from 1; 0: the whole file, which cannot be read
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
