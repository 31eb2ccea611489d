// The host's network as a run sees it: addresses, interfaces, and the ports that are free.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "ssh/host/files.h"

namespace dtool::host {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;  ///< 0: it is none

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

/// Of a numeric address, `fe80::1%eth0` among them.
Address parse_address(const std::string& text, std::uint16_t port);

/// This machine's own address on the way to another one, numeric; no packet is sent. Empty if
/// no way leads there.
std::string local_address_towards(const Address& other);

/// Listens without waiting, for IPv6 and IPv4, or for IPv4 alone where the host has no other; port
/// 0: any that is free. Not open: errno says why.
Descriptor listen_on(std::uint16_t port);
std::uint16_t port_of(const Descriptor& listener);

/// By what those who connect are told apart. All of this machine's own loopback addresses are one.
std::string address_in(const sockaddr_storage& name);

/// The interface that has the numeric address; or empty.
std::string interface_of(std::string_view address);

/// The ports in the text of /proc/net/tcp or tcp6 on which something listens.
std::set<std::uint16_t> parse_listening_ports(std::string_view table);
/// Those of this host.
std::set<std::uint16_t> listening_ports();

/// One that is not taken, below the kernel's own range for outgoing connections, so that none of
/// those takes it meanwhile.
std::uint16_t find_free_port(const std::set<std::uint16_t>& taken);

}  // namespace dtool::host
