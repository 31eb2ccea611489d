// SPDX-License-Identifier: MIT
// Where a process listens for others that know its secret. A new connection is a guest until it has
// proven itself (channel.h). Strangers get no answer, and cannot use up the others' resources.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "killfiles/channel/channel.h"
#include "killfiles/channel/wire.h"

namespace dtool::host {

/// A guest where there is no room for all.
struct GuestInLine {
  int descriptor = -1;
  std::string address;
  bool has_greeted = false;  ///< it has sent a hello
  std::uint64_t number = 0;  ///< the smaller it is the earlier it came
};

/// The guest of these that goes: the oldest of the address that has the most, and one that has sent
/// a hello last. So one machine that floods this host does not keep others away. Up to a fourth of
/// all counts as few: a flood from many addresses pushes out no machine with several ranks. Pure.
int choose_to_go(const std::vector<GuestInLine>& guests);

/// The text that identifies a peer. All loopback addresses of this machine give the same one.
std::string address_in(const sockaddr_storage& name);

std::uint16_t port_of(const Descriptor& listener);

/// A connection whose other end has proven itself.
struct Caller {
  Wire wire;
  Channel channel;
  int place = 0;             ///< the place in its hello
  std::uint64_t number = 0;  ///< the smaller it is the earlier it came
  std::string body;          ///< its first frame
};

/// The proof by which a guest is known. A hello may be a replay: it will do for what only those can
/// read who know the secret.
enum class Proof { hello, frame };

class Door {
 public:
  /// A point in time, of any clock that is not set.
  using Time = std::chrono::milliseconds;
  static Time now();

  struct Terms {
    std::string token;
    std::size_t longest = 0;  ///< the largest body that a caller may send
    Proof proof = Proof::frame;
    std::size_t most_guests = 256;
    Time patience{5000};  ///< how long a guest has to prove itself
    /// Whether somebody of that place is let in; others get no answer. None: everybody is.
    std::function<bool(int place)> is_expected = {};
  };

  /// `listeners` do not block. Throws std::runtime_error.
  Door(std::vector<Descriptor> listeners, Terms terms, Watch& watch);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  std::uint16_t port() const { return port_of(listeners_.front()); }

  /// Reads from a descriptor that is ready. Ignores unknown descriptors.
  std::vector<Caller> take(int descriptor, Time now);
  /// Disconnects guests that have been here too long.
  void turn(Time now);

  std::size_t count_guests() const { return guests_.size(); }
  /// Somebody waits, and this process has neither a descriptor left nor a guest that could go.
  bool lacks_room() const { return lacks_room_; }

 private:
  /// A connection that has proven nothing yet, or has only sent a hello, which may be a replay.
  struct Guest {
    Wire wire;
    std::string address;
    Time since;
    std::uint64_t number;
    std::string said = {};
    std::optional<int> place = {};  ///< the guest's place, known after a hello
    std::optional<Channel> channel = {};
  };

  std::vector<int> let_in(const Descriptor& listener, Time now);
  void make_room();
  void hear(int descriptor, std::vector<Caller>& callers);
  bool greet(Guest& guest);

  std::vector<Descriptor> listeners_;
  Terms terms_;
  Watch& watch_;
  std::map<int, Guest> guests_;  ///< the guests by descriptor
  std::uint64_t last_number_ = 0;
  bool lacks_room_ = false;
};

}  // namespace dtool::host
