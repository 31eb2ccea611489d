// SPDX-License-Identifier: MIT
// Frames: how messages follow each other in a stream. Each has 4 bytes of length, 2 of kind (lowest
// byte first), then the body.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/wire/message.h"
#include "ssh/wire/protocol.h"

namespace dtool::host {

/// The first bytes that dtool-host prints.
inline constexpr std::string_view kGreeting = "dtool-host 1\n";

struct Frame {
  Kind kind = Kind::fault;
  std::string body;
};

/// Throws BadMessage if the body is too large for its kind.
std::string to_frame(Kind kind, std::string_view body);

template <typename Message>
std::string to_frame(const Message& message) {
  return to_frame(Message::kKind, encode(message));
}

/// Cuts a stream that comes in pieces into frames.
class FrameReader {
 public:
  void add(std::string_view bytes) { held_ += bytes; }
  /// The next frame, or nothing if it is incomplete. Throws BadMessage on an unknown kind and on a
  /// frame that is too long for its kind.
  std::optional<Frame> next();
  /// Whether a frame has begun and is incomplete.
  bool is_inside() const { return read_ != held_.size(); }

 private:
  std::string held_;
  std::size_t read_ = 0;  ///< how many of its bytes were handed out
};

/// A host's fault as an error. Its words are never empty, and end at no zero byte.
BadMessage as_error(Fault fault);

/// The message in a frame. Throws BadMessage if the frame is of another kind; for a Fault, with its
/// sentence.
template <typename Message>
Message open(const Frame& frame) {
  if (frame.kind == Kind::fault && Message::kKind != Kind::fault)
    throw as_error(decode<Fault>(frame.body));
  if (frame.kind != Message::kKind)
    throw BadMessage("a message of kind " + std::to_string(static_cast<int>(frame.kind)) +
                     " came where one of kind " + std::to_string(static_cast<int>(Message::kKind)) +
                     " belongs");
  return decode<Message>(frame.body);
}

}  // namespace dtool::host
