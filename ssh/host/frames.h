// Frames: how messages stand behind each other in a stream. 4 bytes of length, 2 of kind (the
// lowest first), then the body.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/host/message.h"
#include "ssh/host/protocol.h"

namespace dtool::host {

/// What dtool-host prints before its first reply.
inline constexpr std::string_view kGreeting = "dtool-host 1\n";

struct Frame {
  Kind kind = Kind::fault;
  std::string body;
};

/// Throws BadMessage where the body is larger than that kind may have.
std::string to_frame(Kind kind, std::string_view body);

template <typename Message>
std::string to_frame(const Message& message) {
  return to_frame(Message::kKind, encode(message));
}

/// Cuts a stream that comes in pieces into frames.
class FrameReader {
 public:
  void add(std::string_view bytes) { held_ += bytes; }
  /// The next frame, or nothing where it is not whole yet. Throws BadMessage on an unknown kind and
  /// on a frame that is longer than its kind may be.
  std::optional<Frame> next();
  /// Whether a frame has begun and is not whole.
  bool is_inside() const { return read_ != held_.size(); }

 private:
  std::string held_;
  std::size_t read_ = 0;  ///< bytes of it that were handed out
};

/// The message in a frame. Throws BadMessage: another kind, a Fault's sentence among them.
template <typename Message>
Message open(const Frame& frame) {
  if (frame.kind == Kind::fault && Message::kKind != Kind::fault)
    throw BadMessage(decode<Fault>(frame.body).sentence);
  if (frame.kind != Message::kKind)
    throw BadMessage("a message of kind " + std::to_string(static_cast<int>(frame.kind)) +
                     " came where one of kind " + std::to_string(static_cast<int>(Message::kKind)) +
                     " belongs");
  return decode<Message>(frame.body);
}

}  // namespace dtool::host
