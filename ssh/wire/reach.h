// SPDX-License-Identifier: MIT
// Messages between dtool and dtool-host (ssh/wire/protocol.h) about ways between hosts, and how far
// their clocks differ.
#pragma once

#include <cstdint>
#include <string>

#include "ssh/wire/protocol.h"

namespace dtool::host {

/// Listen for a while at rank 0's address, as machine 0's session does.
struct ListenRequest {
  static constexpr Kind kKind = Kind::listen_request;
  std::string address;  ///< of this machine, to find its interface
  std::int64_t port = 0;
  Hidden token;  ///< shared secret: both sides must know it
  std::int64_t machines = 1;
  std::int64_t seconds = 0;  ///< ends by itself after this

  void fields(auto visit) { visit(address, port, token, machines, seconds); }
};

struct ListenReply {
  static constexpr Kind kKind = Kind::listen_reply;
  std::int64_t pid = 0;   ///< of the listening process, to end it earlier; 0: nothing listens
  std::string fault;      ///< why nothing listens
  std::string interface;  ///< interface with the address; or empty

  void fields(auto visit) { visit(pid, fault, interface); }
};

/// Report the clock, and try to reach a ListenRequest's listener. The reply is a HostClock, then a
/// ReachReply.
struct ReachRequest {
  static constexpr Kind kKind = Kind::reach_request;
  std::string address;  ///< empty: only the clock
  std::int64_t port = 0;
  Hidden token;
  std::int64_t place = 0;       ///< of this machine
  std::int64_t timeout_ms = 0;  ///< for the answer

  void fields(auto visit) { visit(address, port, token, place, timeout_ms); }
};

struct HostClock {
  static constexpr Kind kKind = Kind::host_clock;
  std::int64_t nanoseconds = 0;  ///< since 1970

  void fields(auto visit) { visit(nanoseconds); }
};

struct ReachReply {
  static constexpr Kind kKind = Kind::reach_reply;
  bool is_reached = false;
  std::string fault;      ///< why it was not reached; or empty
  std::string interface;  ///< interface of the route; or empty

  void fields(auto visit) { visit(is_reached, fault, interface); }
};

}  // namespace dtool::host
