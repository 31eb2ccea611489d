// An address and a port, and the two questions asked of this machine's network: which port is free,
// and by which of its addresses does it reach another machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace dtool::trainer {

struct Endpoint {
  std::string host;  ///< a name, an IPv4 address, or an IPv6 address without brackets
  std::uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
};

/// Reads `IP:PORT`, `name:PORT` or `[v6::address]:PORT`. Throws UsageError.
Endpoint parse_endpoint(std::string_view text);

/// The form that `parse_endpoint` reads.
std::string to_string(const Endpoint& endpoint);

/// Keeps a free TCP port reserved for as long as it lives: no other program is given the port by
/// the kernel, yet a listener that sets SO_REUSEADDR (as TCPStore does) can take it.
class ReservedPort {
 public:
  ReservedPort();  ///< of the loopback address; throws std::system_error
  ~ReservedPort();
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;

  std::uint16_t number() const { return number_; }

 private:
  int socket_ = -1;
  std::uint16_t number_ = 0;
};

/// Tries to connect until it works or `patience` is over: the connected socket, non-blocking, or
/// -1.
int connect_within(const Endpoint& endpoint, std::chrono::milliseconds patience);

/// Tries to connect until a listener answers or `patience` is over; true when one answered.
bool wait_for_listener(const Endpoint& endpoint, std::chrono::milliseconds patience);

/// This machine's own address on the route to `host`, as `ip route get` would name it; no packet is
/// sent. Throws std::runtime_error when `host` has no address or no route leads to it.
std::string local_address_towards(const std::string& host);

/// True for 127.0.0.0/8 and ::1.
bool is_loopback(std::string_view address);

/// The name of the network interface that bears `address`, or empty.
std::string interface_of(std::string_view address);

/// An address of the network interface, IPv4 before IPv6, or empty.
std::string address_of_interface(std::string_view interface);

}  // namespace dtool::trainer
