// SPDX-License-Identifier: MIT
// The host's network as a run sees it: addresses, interfaces, and free ports.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "killfiles/channel/door.h"
#include "ssh/host/files.h"

namespace dtool::host {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;  ///< 0: no address

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

/// Reads a numeric address, such as `fe80::1%eth0`.
Address parse_address(const std::string& text, std::uint16_t port);

/// The address at which the launcher has reached this host, as sshd tells it; empty without sshd.
std::string own_address();

/// This machine's own numeric address on the route to another one; sends no packet. Empty if there
/// is no route.
std::string local_address_towards(const Address& other);

/// Opens a non-blocking listener for IPv6 and IPv4, or for IPv4 alone if the host has no IPv6; a
/// port that another program has on either is not free. Port 0: any free port. If the descriptor is
/// closed, errno says why.
Descriptor listen_on(std::uint16_t port);
/// The same at a port that this user may hold.
Descriptor listen_on_held(std::uint16_t port);
/// Binds the port without listening there: only listen_on_held() of the same user can have it too.
/// The descriptor is closed if the port is not free.
Descriptor hold_port(std::uint16_t port);

/// The interface with that numeric address; or empty.
std::string interface_of(std::string_view address);

/// The listening ports in the text of /proc/net/tcp or tcp6.
std::set<std::uint16_t> parse_listening_ports(std::string_view table);
/// The listening ports of this host.
std::set<std::uint16_t> listening_ports();

/// A port that is free, from 20000 to 31999: below the kernel's range for outgoing connections, so
/// that none of those takes it meanwhile. 0: none of them is free.
std::uint16_t find_port(const std::function<bool(std::uint16_t)>& is_free);
/// The same with the ports that are not taken.
std::uint16_t find_free_port(const std::set<std::uint16_t>& taken);
/// Listens at such a port. Ports that somebody has without listening there are in no table: they
/// are tried. Closed: none of them is free.
Descriptor listen_on_free_port();

}  // namespace dtool::host
