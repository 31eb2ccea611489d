// SPDX-License-Identifier: MIT
// A host's part in passing a package on. It receives the package into a file, from the launcher or
// from another host, and serves it to further hosts meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "ssh/host/files.h"
#include "ssh/host/frame_input.h"
#include "ssh/host/tree/package_server.h"
#include "ssh/wire/tree.h"

namespace dtool::host {

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
