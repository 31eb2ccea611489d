// SPDX-License-Identifier: MIT
#include "trainer/launch/network.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace dtool::trainer {
namespace {

/// A connected socket, or a closed one.
host::Descriptor try_to_connect(const addrinfo& address, std::chrono::milliseconds patience) {
  host::Descriptor probe(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A small message must not wait for the answer to the one before.
  const int on = 1;
  setsockopt(probe.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  bool connected = connect(probe.get(), address.ai_addr, address.ai_addrlen) == 0;
  if (!connected && errno == EINPROGRESS) {
    pollfd writable{probe.get(), POLLOUT, 0};
    int error = 0;
    socklen_t length = sizeof error;
    connected = poll(&writable, 1, static_cast<int>(patience.count())) == 1 &&
                getsockopt(probe.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
  }
  return connected ? std::move(probe) : host::Descriptor();
}

}  // namespace

AddressList resolve(const Endpoint& endpoint, int socket_type, int flags, int& error) {
  addrinfo hints{};
  hints.ai_socktype = socket_type;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  error = getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  return {error == 0 ? found : nullptr, freeaddrinfo};
}

AddressList require_addresses(const Endpoint& endpoint, int socket_type) {
  int error = 0;
  AddressList found = resolve(endpoint, socket_type, 0, error);
  if (found) return found;
  throw std::runtime_error(
      fmt::format("no address found for '{}': {}", endpoint.host, gai_strerror(error)));
}

std::string numeric_address(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = {};
  if (getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

ReservedPort::ReservedPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  if (!socket_.is_open() ||
      setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::system_error(errno, std::generic_category(), "no free port");
}

host::Descriptor connect_within(const Endpoint& endpoint, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kForOneAddress{2000};
  const auto deadline = Clock::now() + patience;
  for (;;) {
    int error = 0;
    const auto found = resolve(endpoint, SOCK_STREAM, 0, error);
    for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      host::Descriptor connected =
          try_to_connect(*each, std::clamp(left, std::chrono::milliseconds(0), kForOneAddress));
      if (connected.is_open()) return connected;
    }
    if (Clock::now() >= deadline) return host::Descriptor();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

bool wait_for_listener(const Endpoint& endpoint, std::chrono::milliseconds patience) {
  return connect_within(endpoint, patience).is_open();
}

std::string local_address_towards(const std::string& host) {
  const auto found = require_addresses({host, 9}, SOCK_DGRAM);
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    const host::Descriptor probe(socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage local{};
    socklen_t length = sizeof local;
    // Connecting a datagram socket sends nothing; the kernel only chooses the route and its source
    // address.
    const bool routed = connect(probe.get(), each->ai_addr, each->ai_addrlen) == 0 &&
                        getsockname(probe.get(), reinterpret_cast<sockaddr*>(&local), &length) == 0;
    if (routed) return numeric_address(reinterpret_cast<sockaddr*>(&local), length);
  }
  throw std::runtime_error(fmt::format("this machine has no route to '{}'", host));
}

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

namespace {

/// Every interface's addresses of one family, as (interface, address).
std::vector<std::pair<std::string, std::string>> interface_addresses(int family) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<std::pair<std::string, std::string>> found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    found.emplace_back(each->ifa_name, numeric_address(each->ifa_addr, length));
  }
  return found;
}

}  // namespace

std::string interface_of(std::string_view address) {
  for (const int family : {AF_INET, AF_INET6}) {
    for (const auto& [interface, its_address] : interface_addresses(family)) {
      if (its_address == address) return interface;
    }
  }
  return "";
}

std::vector<std::string> wanted_interfaces() {
  const char* list = std::getenv("GLOO_SOCKET_IFNAME");
  std::istringstream names(list == nullptr ? "" : list);
  std::vector<std::string> interfaces;
  for (std::string each; std::getline(names, each, ',');) {
    if (!each.empty()) interfaces.push_back(each);
  }
  return interfaces;
}

std::string address_of_interface(std::string_view interface) {
  for (const int family : {AF_INET, AF_INET6}) {
    for (const auto& [name, address] : interface_addresses(family)) {
      if (name == interface) return address;
    }
  }
  return "";
}

}  // namespace dtool::trainer
