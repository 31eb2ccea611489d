// SPDX-License-Identifier: MIT
// Serves a package to other hosts while it is still being received. It is a process of its own, so
// that it continues while the package is unpacked.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "ssh/host/files.h"

namespace dtool::host {

class PackageServer {
 public:
  /// Serves the file of that path, as it grows, to peers that prove by a hello (channel.h) that
  /// they know the secret. Once finish() was called, no peer is served for longer than `longest`.
  PackageServer(const std::string& path, const std::string& secret, std::chrono::seconds longest);
  /// Ends it at once.
  ~PackageServer();
  PackageServer(const PackageServer&) = delete;
  PackageServer& operator=(const PackageServer&) = delete;

  /// 0: not listening
  std::uint16_t port() const { return port_; }
  /// Call it when the file is complete and no further host will come. Waits until each host that is
  /// being served has the whole package or is gone.
  void finish();

 private:
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
  Descriptor control_;
};

}  // namespace dtool::host
