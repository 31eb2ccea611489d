// SPDX-License-Identifier: MIT
#include "trainer/launch/front_door.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "trainer/launch/network.h"

namespace dtool::trainer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kVisit = std::chrono::seconds(10);
constexpr std::size_t kStrangers = 128;
constexpr int kAtOnce = 256;

/// A socket that listens, or -1 and errno.
int listen_with(int family, const sockaddr* address, socklen_t size, bool both_protocols) {
  const int on = 1;
  const int six_only = both_protocols ? 0 : 1;
  const int made = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return -1;
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &six_only, sizeof six_only);
  if (bind(made, address, size) == 0 && listen(made, SOMAXCONN) == 0) return made;
  const int error = errno;
  close(made);
  errno = error;
  return -1;
}

/// Both protocols, or IPv4 where the kernel has no IPv6.
int listen_everywhere(std::uint16_t port) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  const int both = listen_with(AF_INET6, reinterpret_cast<sockaddr*>(&six), sizeof six, true);
  if (both >= 0 || errno == EADDRINUSE || errno == EACCES) return both;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  return listen_with(AF_INET, reinterpret_cast<sockaddr*>(&four), sizeof four, false);
}

[[noreturn]] void fail(const std::vector<int>& open) {
  const int error = errno;
  for (const int each : open) close(each);
  throw std::system_error(error, std::generic_category());
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList addresses_of(const Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (error != 0 && flags == 0) {
    throw std::runtime_error(
        fmt::format("no address found for '{}': {}", endpoint.host, gai_strerror(error)));
  }
  return {error == 0 ? found : nullptr, freeaddrinfo};
}

std::string address_of(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = {};
  getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

}  // namespace

std::vector<int> listen_at(const Endpoint& endpoint) {
  const bool is_name = !addresses_of(endpoint, AI_NUMERICHOST) && endpoint.host != "localhost";
  const auto found = addresses_of(endpoint, 0);
  std::vector<int> open;
  bool is_reachable = false;
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    const int made = listen_with(each->ai_family, each->ai_addr, each->ai_addrlen, false);
    // Some addresses of a name may not belong to this machine, or not yet.
    if (made < 0 && (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT)) continue;
    if (made < 0) fail(open);
    open.push_back(made);
    is_reachable = is_reachable || !is_loopback(address_of(each->ai_addr, each->ai_addrlen));
  }
  // /etc/hosts often has 127.0.1.1 for the machine's own name; and behind NAT others know a machine
  // by an address that it does not have.
  if (!open.empty() && (is_reachable || !is_name)) return open;
  for (const int each : open) close(each);
  open = {listen_everywhere(endpoint.port)};
  if (open.front() < 0) fail({});
  return open;
}

std::unique_ptr<LineSocket> Guest::welcome(std::string_view words) {
  socket_->send(greeting_.welcome(words));
  return std::move(socket_);
}

struct FrontDoor::Visitor {
  std::unique_ptr<LineSocket> socket;
  Greeting greeting;
  Clock::time_point leaves;
  bool was_answered = false;
};

FrontDoor::FrontDoor(const Endpoint& endpoint, std::string name, std::size_t guests,
                     const RunToken& token)
    : token_(&token),
      name_(std::move(name)),
      most_(kStrangers + guests),
      listeners_(listen_at(endpoint)) {
  watched_ = epoll_create1(EPOLL_CLOEXEC);
  for (const int each : listeners_) {
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(watched_, EPOLL_CTL_ADD, each, &event);
  }
}

FrontDoor::~FrontDoor() {
  for (const int each : listeners_) close(each);
  close(watched_);
}

std::uint16_t FrontDoor::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(listeners_.front(), reinterpret_cast<sockaddr*>(&address), &size);
  // The port lies at the same place in IPv4's and IPv6's address.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

/// A connection that has proven half of its knowledge of the token stays longest.
void FrontDoor::make_room() {
  if (visitors_.size() < most_) return;
  auto leaving = std::find_if(visitors_.begin(), visitors_.end(),
                              [](const auto& each) { return !each->was_answered; });
  if (leaving == visitors_.end()) leaving = visitors_.begin();
  visitors_.erase(leaving);
}

void FrontDoor::admit(std::vector<Guest>& guests) {
  for (const int listener : listeners_) {
    for (int i = 0; i < kAtOnce; ++i) {
      const int came = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (came < 0) break;
      auto visitor =
          std::make_unique<Visitor>(Visitor{std::make_unique<LineSocket>(came, kLongestGreeting),
                                            Greeting(*token_, name_), Clock::now() + kVisit});
      epoll_event event{};
      event.events = EPOLLIN;
      epoll_ctl(watched_, EPOLL_CTL_ADD, came, &event);
      // Most of the run's own have said their first line already, and are not taken for a crowd.
      if (!advance(*visitor, guests)) continue;
      make_room();
      visitors_.push_back(std::move(visitor));
    }
  }
}

/// False when the visit is over.
bool FrontDoor::advance(Visitor& visitor, std::vector<Guest>& guests) {
  const auto lines = visitor.socket->receive();
  // A line is said only when the one before was answered.
  if (lines.size() > 1) return false;
  if (lines.empty()) return !visitor.socket->has_ended() && Clock::now() < visitor.leaves;
  if (!visitor.was_answered) {
    const auto answer = visitor.greeting.answer(lines.front());
    if (answer) visitor.socket->send(*answer);
    visitor.was_answered = answer.has_value();
    return visitor.was_answered;
  }
  auto words = visitor.greeting.hear(lines.front());
  if (!words) return false;
  epoll_ctl(watched_, EPOLL_CTL_DEL, visitor.socket->descriptor(), nullptr);
  guests.emplace_back(std::move(visitor.socket), std::move(visitor.greeting), std::move(*words));
  return false;
}

std::vector<Guest> FrontDoor::take() {
  std::vector<Guest> guests;
  admit(guests);
  std::erase_if(visitors_, [&](const auto& each) { return !advance(*each, guests); });
  return guests;
}

// A call reads a bounded amount, so that a peer that sends without end does not delay others.

namespace {

constexpr std::size_t kPiece = 16384;
constexpr int kPieces = 16;

bool only_not_now(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

LineSocket::LineSocket(int descriptor, std::size_t longest)
    : descriptor_(descriptor), longest_(longest) {
  const int on = 1;
  fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
  fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

LineSocket::~LineSocket() {
  if (descriptor_ >= 0) close(descriptor_);
}

int LineSocket::release() {
  return std::exchange(descriptor_, -1);
}

void LineSocket::send(std::string_view line) {
  outgoing_.append(line).append("\n");
  flush();
}

void LineSocket::flush() {
  while (!has_ended_ && !outgoing_.empty()) {
    const auto sent = ::send(descriptor_, outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      // The end is told by `receive`, after what may still be there to read.
      if (!only_not_now(errno)) outgoing_.clear();
      return;
    }
    outgoing_.erase(0, static_cast<std::size_t>(sent));
  }
}

std::vector<std::string> LineSocket::receive() {
  flush();
  std::vector<std::string> lines;
  char buffer[kPiece];
  for (int i = 0; i < kPieces && !has_ended_; ++i) {
    const auto size = read(descriptor_, buffer, sizeof buffer);
    if (size < 0 && only_not_now(errno)) break;
    if (size <= 0) {
      has_ended_ = true;
    } else {
      const auto begin = incoming_.size();
      incoming_.append(buffer, static_cast<std::size_t>(size));
      take_lines(begin, lines);
    }
  }
  return lines;
}

/// The bytes before `begin` contain no line end.
void LineSocket::take_lines(std::size_t begin, std::vector<std::string>& lines) {
  std::size_t taken = 0;
  for (std::size_t end; (end = incoming_.find('\n', begin)) != std::string::npos;) {
    if (end - taken > longest_) break;
    lines.push_back(incoming_.substr(taken, end - taken));
    taken = begin = end + 1;
  }
  incoming_.erase(0, taken);
  if (incoming_.size() > longest_) has_ended_ = true;
}

}  // namespace dtool::trainer
