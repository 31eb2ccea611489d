// SPDX-License-Identifier: MIT
// The kinds of messages between dtool and dtool-host, its program on the hosts: one or more
// requests on standard input, the replies in the same order on standard output. The messages are in
// the other headers of this folder; both ends compile them. docs/protocol.md explains them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/wire/message.h"

namespace dtool::host {

/// The kind of a frame.
enum class Kind : std::uint16_t {
#define DTOOL_MESSAGE(number, name, Message, longest) name = number,
#define DTOOL_BYTES(number, name, longest) name = number,
#include "ssh/wire/kinds.def"
};

/// The largest body of a frame of that kind, in bytes; 0: no such kind.
constexpr std::uint32_t longest_body(Kind kind) {
  constexpr std::uint32_t kKibibyte = 1U << 10U;
  constexpr std::uint32_t kMebibyte = 1U << 20U;
  // Two kinds with one number do not compile.
  switch (kind) {
#define DTOOL_MESSAGE(number, name, Message, longest) DTOOL_BYTES(number, name, longest)
#define DTOOL_BYTES(number, name, longest) \
  case Kind::name:                         \
    return longest;
#include "ssh/wire/kinds.def"
  }
  return 0;
}

/// Text of which a trace shows only the size: a secret, a script, a file's content, or what a
/// user's program wrote.
struct Hidden {
  std::string text;

  void fields(auto visit) { visit(text); }
};

/// Takes the place of a reply: the reason why there is none.
struct Fault {
  static constexpr Kind kKind = Kind::fault;
  std::string sentence;
  std::string hint = {};  ///< the things that the user can do about it; or empty

  void fields(auto visit) { visit(sentence, hint); }
};

/// Before the requests of a command that another may follow; dtool-host sends it back at once,
/// which shows that no start-up file has taken the requests.
struct BeginOfRequests {
  static constexpr Kind kKind = Kind::begin_of_requests;

  void fields(auto visit) { visit(); }
};

/// After a command's last request, where another command may follow: dtool-host waits for it. The
/// end of the input takes its place where none follows.
struct EndOfRequests {
  static constexpr Kind kKind = Kind::end_of_requests;

  void fields(auto visit) { visit(); }
};

/// The answer to EndOfRequests: all replies were sent.
struct EndOfReplies {
  static constexpr Kind kKind = Kind::end_of_replies;
  std::int64_t exit_code = 0;  ///< the exit code with which dtool-host would have ended

  void fields(auto visit) { visit(exit_code); }
};

// Frames: how messages follow each other in a stream. Each has 4 bytes of length, 2 of kind (lowest
// byte first), then the body.

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
