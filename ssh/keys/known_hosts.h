// What known_hosts files say of the key that a host presented: dtool's own verdict, the same as
// ssh's, and closed where ssh would pass over a line that nobody can read.
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
  unknown,     ///< no line is about the host
  changed,     ///< other keys of the host are on record, of whatever type
  revoked,     ///< marked with `@revoked`
  certified,   ///< only an authority that signs host keys is on record, and libssh asks for none
  doubtful,    ///< a line that may be about the host cannot be read
  unreachable  ///< the host presented none
};

/// The state of one key, and the line that decided.
struct KeyVerdict {
  HostKeyState state = HostKeyState::unknown;
  std::filesystem::path file = {};  ///< empty: no line did
  std::size_t line = 0;             ///< from 1; 0: the whole file, which cannot be read
};

/// `FILE:LINE` of the line that decided.
std::string place_of(const KeyVerdict& verdict);

/// One known_hosts file, read once and again when it has changed. A file that is not there has no
/// lines, nor has /dev/null or a folder; one that is no regular file cannot be read.
class KnownHostsFile {
 public:
  explicit KnownHostsFile(std::filesystem::path file);
  ~KnownHostsFile();
  KnownHostsFile(const KnownHostsFile&) = delete;
  KnownHostsFile& operator=(const KnownHostsFile&) = delete;

  /// All lines about that name, which is in lower case and may be `[gpu1]:2222`, in the file's
  /// order; lines whose names cannot be read are about everyone. Good until the next call.
  std::vector<const KnownHostsLine*> lines_about(const std::string& name);

 private:
  struct Lines;
  void read_if_changed();

  std::filesystem::path file_;
  std::unique_ptr<Lines> lines_;
};

/// All files that were asked, by their paths.
class KnownHosts {
 public:
  /// What the host's known_hosts files say of the key with these bytes.
  KeyVerdict judge(const Endpoint& endpoint, std::string_view blob);

  /// The types of the keys that are on record for the host and not revoked, in the files' order: a
  /// server that has several keys is to be asked for one of those.
  std::vector<std::string> types_of(const Endpoint& endpoint);

 private:
  struct Findings;
  Findings look(const Endpoint& endpoint, const std::string& name, std::string_view blob);

  std::map<std::filesystem::path, KnownHostsFile> files_;
};

/// The kinds of keys that a server is asked for, best first, those of the types on record before
/// all others: else a server that has got one more key would look like a stranger.
std::vector<std::string> key_algorithms(const std::vector<std::string>& types_on_record);

/// The name under which a key of the host is put on record: `gpu1`, `[gpu1]:2222`.
std::string name_on_record(const Endpoint& endpoint);

}  // namespace dtool::ssh
