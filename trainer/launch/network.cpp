// SPDX-License-Identifier: MIT
#include "trainer/launch/network.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace dtool::trainer {
namespace {

std::string numeric_address(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = {};
  if (getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// The addresses of `host`, empty when there is none; `error` is getaddrinfo's.
AddressList resolve(const std::string& host, std::uint16_t port, int socket_type, int& error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = socket_type;
  addrinfo* found = nullptr;
  error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {error == 0 ? found : nullptr, freeaddrinfo};
}

/// A connected socket, or -1.
int try_to_connect(const addrinfo& address, std::chrono::milliseconds patience) {
  const int probe = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return -1;
  bool connected = connect(probe, address.ai_addr, address.ai_addrlen) == 0;
  if (!connected && errno == EINPROGRESS) {
    pollfd writable{probe, POLLOUT, 0};
    int error = 0;
    socklen_t length = sizeof error;
    connected = poll(&writable, 1, static_cast<int>(patience.count())) == 1 &&
                getsockopt(probe, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
  }
  if (connected) return probe;
  close(probe);
  return -1;
}

}  // namespace

ReservedPort::ReservedPort() {
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const int on = 1;
  if (socket_ < 0 || setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(socket_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    const int error = errno;
    if (socket_ >= 0) close(socket_);
    throw std::system_error(error, std::generic_category(), "no free port");
  }
  number_ = ntohs(address.sin_port);
}

ReservedPort::~ReservedPort() {
  close(socket_);
}

int connect_within(const Endpoint& endpoint, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + patience;
  for (;;) {
    int error = 0;
    const auto found = resolve(endpoint.host, endpoint.port, SOCK_STREAM, error);
    for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
      const int connected = try_to_connect(*each, std::chrono::seconds(2));
      if (connected >= 0) return connected;
    }
    if (Clock::now() >= deadline) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

bool wait_for_listener(const Endpoint& endpoint, std::chrono::milliseconds patience) {
  const int connected = connect_within(endpoint, patience);
  if (connected >= 0) close(connected);
  return connected >= 0;
}

std::string local_address_towards(const std::string& host) {
  int error = 0;
  const auto found = resolve(host, 9, SOCK_DGRAM, error);
  if (!found) {
    throw std::runtime_error(
        fmt::format("no address found for '{}': {}", host, gai_strerror(error)));
  }
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    const int probe = socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe < 0) continue;
    sockaddr_storage local{};
    socklen_t length = sizeof local;
    // Connecting a datagram socket sends nothing; the kernel only chooses the route and its source
    // address.
    const bool routed = connect(probe, each->ai_addr, each->ai_addrlen) == 0 &&
                        getsockname(probe, reinterpret_cast<sockaddr*>(&local), &length) == 0;
    close(probe);
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

std::string address_of_interface(std::string_view interface) {
  for (const int family : {AF_INET, AF_INET6}) {
    for (const auto& [name, address] : interface_addresses(family)) {
      if (name == interface) return address;
    }
  }
  return "";
}

}  // namespace dtool::trainer
