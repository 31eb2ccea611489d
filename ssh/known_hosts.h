// The lines of known_hosts files that are about one host, found without reading the files anew for
// each: libssh reads them whole, several times a host, and tries the hash of every hashed line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "ssh/reactor.h"

namespace dtool::ssh {

/// One known_hosts file, read once and again when it has changed. It only leaves out lines that are
/// surely about others; what a line means is for libssh to say.
class KnownHostsFile {
 public:
  explicit KnownHostsFile(std::filesystem::path file);
  ~KnownHostsFile();
  KnownHostsFile(const KnownHostsFile&) = delete;
  KnownHostsFile& operator=(const KnownHostsFile&) = delete;

  /// All lines that may be about that name and port, in the file's order, each with its end. A file
  /// that cannot be read has none.
  std::string lines_about(std::string_view name, std::uint16_t port);

 private:
  struct Lines;
  void read_if_changed();

  std::filesystem::path file_;
  std::unique_ptr<Lines> lines_;
};

/// All files that were asked, by their paths.
class KnownHosts {
 public:
  /// The lines of `file` about that name and port in a file of their own that nobody else can
  /// write, and that ends with the descriptor. None where there are no such lines.
  OwnedFd excerpt(const std::filesystem::path& file, std::string_view name, std::uint16_t port);

 private:
  std::map<std::filesystem::path, KnownHostsFile> files_;
};

}  // namespace dtool::ssh
