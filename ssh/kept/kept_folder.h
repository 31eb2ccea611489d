// SPDX-License-Identifier: MIT
// ~/.dtool/connections, the folder with the sockets of kept connections. Keepers make and remove
// the sockets; commands connect to them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/config/client_config.h"
#include "ssh/host.h"
#include "ssh/machine/reactor.h"

namespace dtool::ssh {

/// The result of connecting to a socket.
enum class Reached {
  yes,
  missing,
  refused,  ///< no process listens any more
  unfit,    ///< another user's socket, or too many wait for it
};

/// The folder, after a check that it is this user's alone. Sockets are reached through its
/// descriptor, so a long path does no harm, nor does a folder that replaces it.
class KeptFolder {
 public:
  enum class Make { no, yes };
  /// Nothing if there is no such folder. Throws std::runtime_error with a sentence if it belongs to
  /// another user, others may write into it, or it cannot be made.
  static std::optional<KeptFolder> open(Make make);

  const std::filesystem::path& path() const { return path_; }
  int fd() const { return folder_.get(); }

  struct Connecting {
    Reached reached = Reached::missing;
    OwnedFd socket = {};  ///< non-blocking, of a process of this user
  };
  Connecting connect(const std::string& name) const;

  /// Listens on a socket of that name that only its user can use. Nothing if it cannot be made or
  /// the name is taken. Call it while holding lock().
  OwnedFd listen(const std::string& name) const;

  /// The lock for making and removing sockets, held until the descriptor is closed. Nothing if it
  /// cannot be had: no socket is made or removed then.
  OwnedFd lock() const;

  /// A socket file's inode; 0 if there is none.
  ino_t inode(const std::string& name) const;
  void remove(const std::string& name) const;

  /// The sockets' names.
  std::vector<std::string> names() const;

 private:
  KeptFolder(OwnedFd folder, std::filesystem::path path)
      : folder_(std::move(folder)), path_(std::move(path)) {}
  std::string way_to(const std::string& name) const;

  OwnedFd folder_;
  std::filesystem::path path_;
};

/// Whether the process at the other end is one of this user's.
bool is_own_user(int socket);
/// That process.
pid_t pid_behind(int socket);

// Everything that decides how a host is reached, as one text. Only commands with the same text
// share a connection. The fleet makes it; a keeper compares it.

/// Address, port, user, key name, known_hosts files, identities and agent of the host and of every
/// jump host. The file system's data of each identity (inode, size, times) are included, so that a
/// replaced or removed key opens no kept connection; so are this boot, network and home folder.
/// Throws std::invalid_argument as ClientConfig::resolve does.
std::string connection_key(const ClientConfig& config, const Host& host);

/// The prefix of this machine's socket names; it changes with each boot. Machines may share a home
/// folder, and a socket is useless on another machine.
std::string socket_prefix();

/// A file name for that key: the prefix and 16 digits. Different keys may get the same name.
std::string socket_name(std::string_view key);

}  // namespace dtool::ssh
