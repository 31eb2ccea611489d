// Hands a package to other hosts while it still comes here: a process of its own, so that it goes
// on while the package is unpacked.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "ssh/host/files.h"

namespace dtool::host {

class PackageServer {
 public:
  /// Serves the file of that path, as it grows, to who proves by a hello (channel.h) that it knows
  /// the secret.
  PackageServer(const std::string& path, const std::string& secret);
  /// Ends it at once.
  ~PackageServer();
  PackageServer(const PackageServer&) = delete;
  PackageServer& operator=(const PackageServer&) = delete;

  /// 0: it does not listen.
  std::uint16_t port() const { return port_; }
  /// The file is whole, and nobody else is to be expected: waits until those who are being served
  /// have all, or have gone.
  void finish();

 private:
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
  Descriptor control_;
};

}  // namespace dtool::host
