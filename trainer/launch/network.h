// SPDX-License-Identifier: MIT
// This machine's network: which port is free, who answers, and which of its addresses leads to
// another machine.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "killfiles/channel/door.h"
#include "trainer/settings/command_line.h"

namespace dtool::trainer {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// The addresses of a host for sockets of that type, by getaddrinfo(3) with these flags; or none,
/// and its `error`.
AddressList resolve(const Endpoint& endpoint, int socket_type, int flags, int& error);
/// The same without flags. Throws std::runtime_error if there is none.
AddressList require_addresses(const Endpoint& endpoint, int socket_type);

/// In digits; or empty.
std::string numeric_address(const sockaddr* address, socklen_t size);

/// Keeps a free TCP port reserved while it lives: the kernel gives the port to no other program,
/// but a listener that sets SO_REUSEADDR (as TCPStore does) can take it.
class ReservedPort {
 public:
  ReservedPort();  ///< reserves a port on the loopback address; throws std::system_error

  std::uint16_t number() const { return host::port_of(socket_); }

 private:
  host::Descriptor socket_;
};

/// Tries to connect until it succeeds or `patience` is over. Returns the connected non-blocking
/// socket, or a closed one.
host::Descriptor connect_within(const Endpoint& endpoint, std::chrono::milliseconds patience);

/// Tries to connect until a listener answers or `patience` is over; true if one answered.
bool wait_for_listener(const Endpoint& endpoint, std::chrono::milliseconds patience);

/// This machine's own address on the route to `host`, as in `ip route get`; sends no packet. Throws
/// std::runtime_error if `host` has no address or there is no route to it.
std::string local_address_towards(const std::string& host);

/// True for 127.0.0.0/8 and ::1.
bool is_loopback(std::string_view address);

/// The name of the network interface that has `address`, or empty.
std::string interface_of(std::string_view address);

/// An address of the network interface, preferably IPv4, or empty.
std::string address_of_interface(std::string_view interface);

/// The interfaces that GLOO_SOCKET_IFNAME lists with commas between them; none if it is not set.
std::vector<std::string> wanted_interfaces();

}  // namespace dtool::trainer
