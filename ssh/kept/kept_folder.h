// ~/.dtool/connections, where the sockets of kept connections are: commands connect to them,
// keepers make them and take them away.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ssh/machine/reactor.h"

namespace dtool::ssh {

/// What connecting to a socket came to.
enum class Reached {
  yes,
  missing,
  refused,  ///< nobody listens any more
  unfit,    ///< another user's, or too many wait for it
};

/// The folder, found to be this user's alone. Sockets are reached through it, so that neither a
/// long path nor a folder that takes its place matters.
class KeptFolder {
 public:
  enum class Make { no, yes };
  /// Nothing where there is none. Throws std::runtime_error with a sentence where it belongs to
  /// another user or others may write into it, or where it cannot be made.
  static std::optional<KeptFolder> open(Make make);

  const std::filesystem::path& path() const { return path_; }
  int fd() const { return folder_.get(); }

  struct Connecting {
    Reached reached = Reached::missing;
    OwnedFd socket = {};  ///< non-blocking, of a process of this user
  };
  Connecting connect(const std::string& name) const;

  /// A socket that listens under that name, which nobody but its user can use. Nothing where it
  /// cannot be made, or the name is taken. Called while holding lock().
  OwnedFd listen(const std::string& name) const;

  /// Held by who makes or removes sockets, until the descriptor is closed.
  OwnedFd lock() const;

  /// A socket file's inode; 0 where there is none.
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

}  // namespace dtool::ssh
