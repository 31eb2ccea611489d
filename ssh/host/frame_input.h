// SPDX-License-Identifier: MIT
// The frames that dtool-host reads from a descriptor.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "ssh/wire/protocol.h"

namespace dtool::host {

/// The frames that arrive on a descriptor.
class FrameInput {
 public:
  explicit FrameInput(int descriptor) : descriptor_(descriptor) {}

  /// The next frame; nothing at the end. Throws BadMessage as FrameReader does, if the stream ends
  /// inside a frame, and if no byte comes within `patience`; std::runtime_error if reading fails.
  std::optional<Frame> next(std::optional<std::chrono::milliseconds> patience = std::nullopt);
  /// Ignores all later frames.
  void leave() { is_left_ = true; }
  /// After leave(): passes over all frames up to the next EndOfRequests. False if none comes soon,
  /// within a mebibyte; the input is useless then.
  bool skip_to_end_of_requests();
  /// Called each second while next() waits with patience, with the time without a byte; what it
  /// throws ends the wait.
  using OnWait = std::function<void(std::chrono::milliseconds)>;
  void set_on_wait(OnWait on_wait) { on_wait_ = std::move(on_wait); }

 private:
  void await(std::chrono::milliseconds patience) const;

  int descriptor_;
  OnWait on_wait_ = {};
  FrameReader reader_ = {};
  bool is_left_ = false;
};

}  // namespace dtool::host
