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

/// The kind of a frame. A number is never reused.
enum class Kind : std::uint16_t {
  fault = 1,
  kill_request = 2,
  kill_reply = 3,
  start_request = 4,
  start_reply = 5,
  status_request = 6,
  status_reply = 7,
  log_request = 8,
  log_begin = 9,
  log_bytes = 10,
  log_break = 11,
  log_end = 12,
  still_here = 13,
  check_request = 14,
  check_reply = 15,
  ready_request = 16,
  ready_reply = 17,
  listen_request = 18,
  listen_reply = 19,
  reach_request = 20,
  host_clock = 21,
  reach_reply = 22,
  tree_request = 30,
  tree_reply = 31,
  package_bytes = 32,
  names = 33,
  place_request = 35,
  place_reply = 36,
  look_request = 39,
  look_reply = 40,
  tree_news = 41,
  selected_lines = 42,
  ranks_of_log = 43,
  freeze_request = 50,
  freeze_reply = 51,
  remove_request = 52,
  remove_reply = 53,
  python_request = 60,
  python_reply = 61,
  copy_request = 70,
  copy_reply = 71,
  copy_entry = 72,
  copy_piece = 73,
  copy_sum = 74,
  parcel_request = 75,
  parcel_reply = 76,
  begin_of_requests = 79,
  end_of_requests = 80,
  end_of_replies = 81,
};

/// The largest body of a frame of that kind, in bytes; 0: no such kind.
constexpr std::uint32_t longest_body(Kind kind) {
  constexpr std::uint32_t kSentences = 64U << 10U;
  constexpr std::uint32_t kMebibyte = 1U << 20U;
  switch (kind) {
    case Kind::fault:
    case Kind::start_reply:
    case Kind::log_request:
    case Kind::log_begin:
    case Kind::log_break:
    case Kind::log_end:
    case Kind::still_here:
    case Kind::ready_request:
    case Kind::ready_reply:
    case Kind::listen_request:
    case Kind::listen_reply:
    case Kind::reach_request:
    case Kind::host_clock:
    case Kind::reach_reply:
    case Kind::tree_request:
    case Kind::place_request:
    case Kind::look_request:
    case Kind::look_reply:
    case Kind::tree_news:
    case Kind::freeze_request:
    case Kind::freeze_reply:
    case Kind::remove_request:
    case Kind::remove_reply:
    case Kind::python_request:
    case Kind::python_reply:
    case Kind::copy_request:
    case Kind::copy_sum:
    case Kind::parcel_request:
    case Kind::begin_of_requests:
    case Kind::end_of_requests:
    case Kind::end_of_replies:
      return kSentences;
    case Kind::package_bytes:
    case Kind::copy_entry:
    case Kind::copy_piece:
      return kMebibyte;
    case Kind::log_bytes:
    case Kind::selected_lines:
    case Kind::ranks_of_log:
    case Kind::kill_request:
    case Kind::kill_reply:
    case Kind::check_reply:
    case Kind::tree_reply:
    case Kind::names:
    case Kind::parcel_reply:
      return 4 * kMebibyte;
    case Kind::start_request:
    case Kind::status_request:
    case Kind::check_request:
      return 16 * kMebibyte;
    case Kind::status_reply:
    case Kind::copy_reply:
    case Kind::place_reply:
      return 64 * kMebibyte;
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
