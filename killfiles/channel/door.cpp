// SPDX-License-Identifier: MIT
#include "killfiles/channel/door.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <tuple>
#include <utility>

#include "ssh/wire/message.h"

namespace dtool::host {
namespace {

constexpr int kMostAtOnce = 64;  // so that known peers are served in between
constexpr std::size_t kMostOfGuest = 4096;

/// Whether somebody waits to be let in.
bool is_awaited(const Descriptor& listener) {
  pollfd polled{listener.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

}  // namespace

int choose_to_go(const std::vector<GuestInLine>& guests) {
  std::map<std::string, std::ptrdiff_t> counts;
  for (const GuestInLine& each : guests) ++counts[each.address];
  const auto few = std::ssize(guests) / 4;
  const auto order = [&](const GuestInLine& each) {
    return std::tuple(-std::max(counts[each.address], few), each.has_greeted, each.number);
  };
  return std::ranges::min_element(guests, {}, order)->descriptor;
}

std::string address_in(const sockaddr_storage& name) {
  if (name.ss_family == AF_INET6) {
    in6_addr address = reinterpret_cast<const sockaddr_in6&>(name).sin6_addr;
    const bool is_here = IN6_IS_ADDR_LOOPBACK(&address) ||
                         (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == IN_LOOPBACKNET);
    return is_here ? "here" : std::string(reinterpret_cast<const char*>(&address), sizeof address);
  }
  const in_addr address = reinterpret_cast<const sockaddr_in&>(name).sin_addr;
  const bool is_here = ntohl(address.s_addr) >> 24U == IN_LOOPBACKNET;
  return is_here ? "here" : std::string(reinterpret_cast<const char*>(&address), sizeof address);
}

std::uint16_t port_of(const Descriptor& listener) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

Door::Time Door::now() {
  return std::chrono::duration_cast<Time>(std::chrono::steady_clock::now().time_since_epoch());
}

Door::Door(std::vector<Descriptor> listeners, Terms terms, Watch& watch)
    : listeners_(std::move(listeners)), terms_(std::move(terms)), watch_(watch) {
  for (const Descriptor& each : listeners_) watch_.add(each.get());
}

Door::~Door() {
  for (const Descriptor& each : listeners_) watch_.remove(each.get());
}

void Door::make_room() {
  lacks_room_ = guests_.empty();
  if (lacks_room_) return;
  std::vector<GuestInLine> line;
  for (const auto& [descriptor, guest] : guests_)
    line.push_back({descriptor, guest.address, guest.place.has_value(), guest.number});
  guests_.erase(choose_to_go(line));
}

std::vector<int> Door::let_in(const Descriptor& listener, Time now) {
  std::vector<int> come;
  for (int i = 0; i < kMostAtOnce; ++i) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    Descriptor socket(::accept4(listener.get(), reinterpret_cast<sockaddr*>(&name), &size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      // accept4() wants a descriptor before it looks whether anyone is there.
      const bool has_none_left = errno == EMFILE || errno == ENFILE;
      if (has_none_left && is_awaited(listener)) make_room();
      break;
    }
    if (guests_.size() >= terms_.most_guests) make_room();
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int descriptor = socket.get();
    guests_.emplace(descriptor,
                    Guest{Wire(std::move(socket), watch_), address_in(name), now, ++last_number_});
    come.push_back(descriptor);
  }
  return come;
}

/// Answers a hello. False if it is none.
bool Door::greet(Guest& guest) {
  if (terms_.proof == Proof::hello && guest.said.size() != kHelloSize) return false;
  const std::string hello = guest.said.substr(0, kHelloSize);
  guest.place = read_hello(terms_.token, hello);
  if (!guest.place || (terms_.is_expected && !terms_.is_expected(*guest.place))) return false;
  const std::string welcome = make_welcome(terms_.token, hello);
  guest.channel.emplace(terms_.token, hello, welcome, End::coordinator, terms_.longest);
  guest.channel->add(std::string_view(guest.said).substr(kHelloSize));
  return guest.wire.write(welcome, kMostOfGuest);
}

void Door::hear(int descriptor, std::vector<Caller>& callers) {
  const auto at = guests_.find(descriptor);
  Guest& guest = at->second;
  std::string bytes;
  const Wire::Read read = guest.wire.read(bytes, kMostOfGuest - guest.said.size());
  if (read == Wire::Read::nothing_yet && guest.wire.flush()) return;
  guest.said += bytes;
  bool is_welcome =
      read == Wire::Read::some && may_be_hello(guest.said) && guest.said.size() < kMostOfGuest;
  if (guest.channel) {
    guest.channel->add(bytes);
  } else if (is_welcome && guest.said.size() >= kHelloSize) {
    is_welcome = greet(guest);
  }
  std::optional<std::string> body;
  try {
    if (guest.channel) body = terms_.proof == Proof::hello ? "" : guest.channel->next();
  } catch (const BadMessage&) {
    is_welcome = false;
  }
  if (is_welcome && !body) return;
  if (is_welcome)
    callers.push_back({std::move(guest.wire), *std::move(guest.channel), *guest.place, guest.number,
                       *std::move(body)});
  guests_.erase(at);
}

std::vector<Caller> Door::take(int descriptor, Time now) {
  std::vector<Caller> callers;
  lacks_room_ = false;
  const auto listener = std::ranges::find(listeners_, descriptor, &Descriptor::get);
  if (listener != listeners_.end()) {
    for (const int each : let_in(*listener, now)) {
      if (guests_.contains(each)) hear(each, callers);
    }
  } else if (guests_.contains(descriptor)) {
    hear(descriptor, callers);
  }
  return callers;
}

void Door::turn(Time now) {
  std::erase_if(guests_,
                [&](const auto& each) { return now - each.second.since > terms_.patience; });
}

}  // namespace dtool::host
