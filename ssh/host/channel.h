// How two sessions of a run prove to each other that they know the run's token, and how what they
// say then is kept from being changed, repeated or invented. Bytes in, bytes out; no socket. The
// token never crosses.
//
//   machine N -> machine 0   a hello: N, a random number, a proof of both
//   machine 0 -> machine N   a random number, a proof of it and of the hello
//   then both ways           frames: 4 bytes of length, the body, a proof of how many came before
//                            it, and of it
//
// A proof is an HMAC-SHA256. Those of a greeting are under the token, with a word for the
// direction; those of frames are under a key for the direction, which follows from the token and
// the greeting. Who connects proves first, so strangers get no answer. Who says an overheard hello
// again gets one, and cannot go on from there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/host/sha256.h"

namespace dtool::host {

inline constexpr std::size_t kHelloSize = 64;
inline constexpr std::size_t kWelcomeSize = 48;

/// What a machine says first. Throws std::runtime_error if there are no random numbers.
std::string make_hello(std::string_view token, int place);

/// The place whose machine said it; nothing if it is not proven.
std::optional<int> read_hello(std::string_view token, std::string_view hello);

/// Whether bytes may be the beginning of a hello.
bool may_be_hello(std::string_view beginning);

/// What machine 0 answers.
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
  /// The next body, or nothing if it is not whole yet. Throws BadMessage if its proof is
  /// wrong or it is too long: the connection is of no use then.
  std::optional<std::string> next();

 private:
  Digest sending_;
  Digest receiving_;
  std::size_t longest_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::string held_;
};

/// The run's token, from the file `token` here; nothing if it is not what it should be.
std::optional<std::string> read_token();

}  // namespace dtool::host
