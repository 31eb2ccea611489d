// Frames: how messages stand behind each other in a stream. 4 bytes of length, 2 of kind (the
// lowest first), then the body.
#pragma once

#include <chrono>
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

/// Throws BadMessage if the body is larger than that kind may have.
std::string to_frame(Kind kind, std::string_view body);

template <typename Message>
std::string to_frame(const Message& message) {
  return to_frame(Message::kKind, encode(message));
}

/// Cuts a stream that comes in pieces into frames.
class FrameReader {
 public:
  void add(std::string_view bytes) { held_ += bytes; }
  /// The next frame, or nothing if it is not whole yet. Throws BadMessage on an unknown kind and
  /// on a frame that is longer than its kind may be.
  std::optional<Frame> next();
  /// Whether a frame has begun and is not whole.
  bool is_inside() const { return read_ != held_.size(); }

 private:
  std::string held_;
  std::size_t read_ = 0;  ///< bytes of it that were handed out
};

/// The frames that come on a descriptor.
class FrameInput {
 public:
  explicit FrameInput(int descriptor) : descriptor_(descriptor) {}

  /// The next frame; nothing at the end. Throws BadMessage as FrameReader, where the stream ends in
  /// the middle of a frame, and where no byte comes for so long; std::runtime_error if it cannot
  /// be read.
  std::optional<Frame> next(std::optional<std::chrono::milliseconds> patience = std::nullopt);
  /// Nobody reads what may still come.
  void leave() { is_left_ = true; }

 private:
  int descriptor_;
  FrameReader reader_ = {};
  bool is_left_ = false;
};

/// The message in a frame. Throws BadMessage: another kind, a Fault's sentence among them.
template <typename Message>
Message open(const Frame& frame) {
  if (frame.kind == Kind::fault && Message::kKind != Kind::fault) {
    const auto fault = decode<Fault>(frame.body);
    throw BadMessage(fault.sentence, fault.hint);
  }
  if (frame.kind != Message::kKind)
    throw BadMessage("a message of kind " + std::to_string(static_cast<int>(frame.kind)) +
                     " came where one of kind " + std::to_string(static_cast<int>(Message::kKind)) +
                     " belongs");
  return decode<Message>(frame.body);
}

}  // namespace dtool::host
