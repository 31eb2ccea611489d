// SPDX-License-Identifier: MIT
// How two sessions of a run prove to each other that they know the run's token, and how their later
// messages are protected against change, replay and forgery. Bytes in, bytes out; no socket. The
// token is never sent.
//
//   machine N -> machine 0   a hello: N, a random number, a proof of both
//   machine 0 -> machine N   a random number, a proof of it and of the hello
//   then both ways           frames: 4 bytes of length, the body, a proof of how many came before
//                            it, and of it
//
// A proof is an HMAC-SHA256. The proofs of a greeting use the token and a word for the direction.
// The proofs of frames use a key for the direction, derived from the token and the greeting. The
// side that connects proves itself first, so strangers get no answer. An attacker who replays a
// hello gets a welcome, but cannot continue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "killfiles/channel/sha256.h"

namespace dtool::host {

inline constexpr std::size_t kHelloSize = 64;
inline constexpr std::size_t kWelcomeSize = 48;
inline constexpr std::size_t kEmptyFrameSize = 36;  ///< the frame of an empty body

/// 16 of them. Throws std::runtime_error if there are none.
std::string random_bytes();

/// The first bytes that a machine sends. Throws std::runtime_error if there are no random numbers.
std::string make_hello(std::string_view token, int place);

/// The place of the machine that sent the hello; nothing if the proof is wrong.
std::optional<int> read_hello(std::string_view token, std::string_view hello);

/// Whether the bytes may be the beginning of a hello.
bool may_be_hello(std::string_view beginning);

/// Machine 0's answer.
std::string make_welcome(std::string_view token, std::string_view hello);
bool is_welcome(std::string_view token, std::string_view hello, std::string_view welcome);

/// Which end of the connection this is.
enum class End { machine, coordinator };

/// A connection after its greeting.
class Channel {
 public:
  /// `longest`: the largest body that the other end may send.
  Channel(std::string_view token, std::string_view hello, std::string_view welcome, End end,
          std::size_t longest);

  /// The frame for a body.
  std::string seal(std::string_view body);
  void add(std::string_view bytes) { held_ += bytes; }
  /// The next body, or nothing if it is incomplete. Throws BadMessage if its proof is wrong or it
  /// is too long; the connection is useless then.
  std::optional<std::string> next();

 private:
  Digest sending_;
  Digest receiving_;
  std::size_t longest_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::string held_;
};

}  // namespace dtool::host
