// SPDX-License-Identifier: MIT
// Files of this machine: read whole or in pieces, told apart by stamps, found below the home
// folder, without a name, and how many may be open at once.
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/files.h"

namespace dtool::ssh {

using OwnedFd = host::Descriptor;

/// The bytes of `file`, which may be a pipe. Throws std::system_error with errno's code, naming the
/// file.
std::string read_file(const std::filesystem::path& file);

/// The kernel's id of this boot, which changes with each boot; empty if it cannot be read.
std::string boot_id();

// Reads a file of any size without holding it in memory.

/// Calls `take` with all bytes of a file, piece by piece. Throws std::runtime_error if it cannot
/// be read.
template <typename Take>
void read_pieces(const std::filesystem::path& file, Take take) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> piece(1 << 20);
  while (stream) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    take(std::string_view(piece.data(), static_cast<std::size_t>(stream.gcount())));
  }
  if (!stream.eof()) throw std::runtime_error(fmt::format("cannot read {}", file.string()));
}

// The user's home folder on this machine, for `~`.

/// $HOME, else the folder from the password database, else `/`. `~/.ssh` and `~/.dtool` are in it.
std::filesystem::path home_folder();

/// `path` with home_folder() in place of a leading `~`.
std::filesystem::path from_home(std::string_view path);

/// The way from `folder` to `path`, by their names alone: `.` for the folder itself, nothing if the
/// path is not in it.
std::optional<std::filesystem::path> below(const std::filesystem::path& path,
                                           const std::filesystem::path& folder);

// Tells whether a file has changed: known_hosts files and keys, which outlive a command if its
// connections are kept.

/// stat(2) of `file`, following links; all zeros if there is no such file.
struct stat status_of(const std::filesystem::path& file);

/// A text that changes with the file and with its replacement: device, inode, size, and the time of
/// the last change of any kind (ctime), which cannot be set back.
std::string stamp_of(const struct stat& status);

/// A new folder among the temporary files, which goes in the end with what is in it.
class TemporaryFolder {
 public:
  /// Throws std::system_error.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Makes `fd` non-blocking, for all processes that share it.
void make_non_blocking(int fd);

/// An unnamed file in memory that holds `bytes`, positioned at its beginning. Close-on-exec. None
/// if there is no room for it; errno says why.
OwnedFd memory_file(std::string_view bytes);

/// An empty unnamed file on disk, in $TMPDIR, else /var/tmp: /tmp often is in memory.
/// Close-on-exec. None if it cannot be made; errno says why.
OwnedFd file_without_name();

/// The address of the Unix socket at `path`. Nothing if that is too long; errno says so.
std::optional<sockaddr_un> unix_address(const std::string& path);

/// A non-blocking connection of that type (SOCK_STREAM, say) to the Unix socket at `path`,
/// close-on-exec. None if it cannot be made; errno says why (EAGAIN: too many wait there).
OwnedFd connect_unix(const std::string& path, int type);

// The limit of open files, which bounds how many hosts can be served at once.

/// Raises the limit for `hosts` hosts, `width` of them at once. Returns how many hosts at once it
/// allows. Throws std::runtime_error if it is too low for one connection to each host.
std::size_t make_room_for_files(std::size_t hosts, std::size_t width);

/// Whether the limit then allows a dtool-host that waits for requests on each of them, too.
bool has_room_for_files(std::size_t hosts, std::size_t width);

}  // namespace dtool::ssh
