// SPDX-License-Identifier: MIT
// Serves packages to other hosts while they are still being received. It is a process of its own,
// so that it continues while packages are unpacked.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "ssh/host/files.h"
#include "ssh/host/frame_input.h"
#include "ssh/wire/tree.h"

namespace dtool::host {

class PackageServer {
 public:
  /// Serves peers that prove by a hello (channel.h) that they know the secret, and name a package
  /// in it. They are welcomed at once; a package that is named before add() is waited for.
  /// After `untold` without an order and a peer it ends: a host takes hours to notice that the
  /// launcher has lost its power.
  PackageServer(const std::string& secret, std::chrono::seconds longest,
                std::chrono::milliseconds untold = std::chrono::minutes(30));
  /// The one that is there if its secret is the part's and its process lives, else a new one.
  static PackageServer& of(const RelayPart& part, std::optional<PackageServer>& server);
  /// Ends it at once.
  ~PackageServer();
  PackageServer(const PackageServer&) = delete;
  PackageServer& operator=(const PackageServer&) = delete;

  /// 0: not listening
  std::uint16_t port() const { return port_; }
  /// Serves this file, as it grows, as the package of that number.
  void add(std::int64_t number, const Descriptor& file);
  /// No further peer gets that package.
  void drop(std::int64_t number);
  /// The same, and peers that take it lose their connection: the rest will not come.
  void cut(std::int64_t number);
  /// All packages are complete and no further host will come. The server ends when each host that
  /// it serves has the whole package or is gone, but after `longest` at the latest.
  void finish();

 private:
  bool has_ended();
  void tell(std::int64_t number, char word, int file);

  std::string secret_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
  Descriptor control_;
};

// A host's part in passing a package on. It receives the package into a file, from the launcher or
// from another host, and serves it to further hosts meanwhile.

/// Why another host did not send the package.
class NotGiven : public std::runtime_error {
 public:
  explicit NotGiven(const std::string& reason, bool spoilt = false)
      : runtime_error(reason), is_spoilt(spoilt) {}
  bool is_spoilt;  ///< it sent wrong bytes
};

class PassedOn {
 public:
  /// Makes the file and has `server` pass it on. `tell` is called at once with the address for
  /// other hosts, and then with the number of bytes received. Throws std::runtime_error.
  PassedOn(const std::string& path, const RelayPart& part, PackageServer& server,
           std::function<void(const TreeNews&)> tell);

  /// Returns when all bytes are received. Throws NotGiven if they were to come from another host;
  /// else BadMessage as FrameInput does.
  void get(FrameInput& input, std::chrono::milliseconds patience);
  /// The received bytes.
  FrameInput& content() { return *content_; }

 private:
  void take_from_launcher(FrameInput& input, std::chrono::milliseconds patience);
  void take_from(const RelayPart::Parent& parent, std::chrono::milliseconds patience);

  RelayPart part_;
  PackageServer& server_;
  std::function<void(const TreeNews&)> tell_;
  Descriptor file_;
  std::optional<FrameInput> content_;
};

}  // namespace dtool::host
