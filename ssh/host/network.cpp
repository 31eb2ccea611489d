// SPDX-License-Identifier: MIT
#include "ssh/host/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <random>
#include <utility>

#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

constexpr std::uint16_t kFirstPort = 20000;
constexpr std::uint16_t kLastPort = 31999;
constexpr int kWaiting = 1024;

/// The numeric form, without the zone of an IPv6 address; or empty.
std::string to_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes =
      address->sa_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
          : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  const char* done = ::inet_ntop(address->sa_family, bytes, text.data(), text.size());
  return done == nullptr ? "" : done;
}

enum class Use { hold, listen, listen_on_held };

/// With SO_REUSEPORT a socket may be bound beside those of the same user that have it too; other
/// users' sockets may not (socket(7)). A holder gets it once it is bound, so that it never joins
/// another one. It never has SO_REUSEADDR, by which any user could join a socket that does not
/// listen.
Descriptor bind_to(const sockaddr* address, socklen_t size, Use use) {
  Descriptor socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return socket;
  const int on = 1;
  const int off = 0;
  const auto set = [&socket](int option, const int& value) {
    ::setsockopt(socket.get(), SOL_SOCKET, option, &value, sizeof value);
  };
  if (use != Use::hold) set(SO_REUSEADDR, on);
  if (use == Use::listen_on_held) set(SO_REUSEPORT, on);
  if (address->sa_family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(socket.get(), address, size) != 0) return Descriptor();
  if (use == Use::hold) set(SO_REUSEPORT, on);
  if (use != Use::hold && ::listen(socket.get(), kWaiting) != 0) return Descriptor();
  return socket;
}

bool has_no_ipv6(int error) {
  return error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
}

/// At all addresses of the host.
Descriptor bind_to(std::uint16_t port, Use use) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  six.sin6_addr = in6addr_any;
  Descriptor socket = bind_to(reinterpret_cast<const sockaddr*>(&six), sizeof six, use);
  // Any other error: somebody may have the port on IPv6.
  if (socket.is_open() || !has_no_ipv6(errno)) return socket;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  return bind_to(reinterpret_cast<const sockaddr*>(&four), sizeof four, use);
}

}  // namespace

Address parse_address(const std::string& text, std::uint16_t port) {
  Address address;
  auto& four = reinterpret_cast<sockaddr_in&>(address.bytes);
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    address.size = sizeof four;
    return address;
  }
  auto& six = reinterpret_cast<sockaddr_in6&>(address.bytes);
  const std::size_t percent = text.find('%');
  if (::inet_pton(AF_INET6, text.substr(0, percent).c_str(), &six.sin6_addr) != 1) return address;
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  if (percent != text.npos) six.sin6_scope_id = ::if_nametoindex(text.c_str() + percent + 1);
  address.size = sizeof six;
  return address;
}

std::string own_address() {
  const char* connection = std::getenv("SSH_CONNECTION");  // `CLIENT PORT ADDRESS PORT`
  std::string_view words = connection == nullptr ? "" : connection;
  cut_word(words);
  cut_word(words);
  return std::string(cut_word(words));
}

std::string local_address_towards(const Address& other) {
  if (other.size == 0) return {};
  const Descriptor socket(::socket(other.bytes.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open() || ::connect(socket.get(), other.get(), other.size) != 0) return {};
  Address own;
  own.size = sizeof own.bytes;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own.bytes), &own.size) != 0)
    return {};
  return to_text(own.get());
}

Descriptor listen_on(std::uint16_t port) {
  return bind_to(port, Use::listen);
}

Descriptor listen_on_held(std::uint16_t port) {
  Descriptor listener = listen_on(port);
  return listener.is_open() ? std::move(listener) : bind_to(port, Use::listen_on_held);
}

Descriptor hold_port(std::uint16_t port) {
  return bind_to(port, Use::hold);
}

std::string interface_of(std::string_view address) {
  ifaddrs* all = nullptr;
  if (address.empty() || ::getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, ::freeifaddrs);
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    const bool is_address = family == AF_INET || family == AF_INET6;
    if (is_address && to_text(each->ifa_addr) == address) return each->ifa_name;
  }
  return {};
}

std::set<std::uint16_t> parse_listening_ports(std::string_view table) {
  constexpr std::string_view kListening = "0A";
  std::set<std::uint16_t> ports;
  while (!table.empty()) {
    std::string_view line = cut_line(table);
    cut_word(line);
    std::string_view local = cut_word(line);
    cut_word(line);
    if (cut_word(line) != kListening) continue;
    local.remove_prefix(std::min(local.rfind(':') + 1, local.size()));
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(local.data(), local.data() + local.size(), port, 16);
    if (error == std::errc() && end == local.data() + local.size()) ports.insert(port);
  }
  return ports;
}

std::set<std::uint16_t> listening_ports() {
  constexpr std::size_t kMost = std::size_t{64} << 20U;
  std::set<std::uint16_t> ports;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"})
    ports.merge(parse_listening_ports(read_file(table, kMost).value_or("")));
  return ports;
}

std::uint16_t find_port(const std::function<bool(std::uint16_t)>& is_free) {
  std::random_device random;
  std::uniform_int_distribution<std::uint16_t> any(kFirstPort, kLastPort);
  std::uint16_t port = any(random);
  for (int tried = kFirstPort; tried <= kLastPort; ++tried) {
    if (is_free(port)) return port;
    port = port == kLastPort ? kFirstPort : static_cast<std::uint16_t>(port + 1);
  }
  return 0;
}

std::uint16_t find_free_port(const std::set<std::uint16_t>& taken) {
  return find_port([&taken](std::uint16_t port) { return !taken.contains(port); });
}

Descriptor listen_on_free_port() {
  const std::set<std::uint16_t> taken = listening_ports();
  Descriptor listener;
  find_port([&](std::uint16_t port) {
    if (!taken.contains(port)) listener = listen_on(port);
    return listener.is_open();
  });
  return listener;
}

}  // namespace dtool::host
