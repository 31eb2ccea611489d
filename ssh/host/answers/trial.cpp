// SPDX-License-Identifier: MIT
// Whether machine 0 can listen, and the others reach it there.
#include "ssh/host/answers/answers.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "killfiles/channel/channel.h"
#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/network.h"
#include "ssh/host/session/report_port.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

/// No word of a user's own, and no number that was not looked at, gets further.
std::uint16_t check_port(std::int64_t port) {
  if (port < 1 || port > 65535) throw std::runtime_error("there is no such port");
  return static_cast<std::uint16_t>(port);
}

/// Runs in the process that listens. `fault`: gets the reason if it does not listen; closed once it
/// does.
[[noreturn]] void listen_until(const ListenRequest& request, Time end, Descriptor fault) {
  try {
    Watch watch;
    ReportPort port(check_port(request.port), static_cast<int>(request.machines),
                    request.token.text, watch);
    ::setsid();
    give_nothing({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
    fault = Descriptor();
    sigset_t none;
    ::sigemptyset(&none);
    for (Time now = time_since_boot(); now < end; now = time_since_boot()) {
      for (const int each : watch.wait(std::min<Time>(end - now, 1s), none)) port.take(each, now);
      port.turn(now);
    }
  } catch (const std::runtime_error& error) {
    const std::string_view words = error.what();
    [[maybe_unused]] const ssize_t size = ::write(fault.get(), words.data(), words.size());
  }
  ::_exit(0);
}

/// Waits until a socket can be read or written; false if the time is over.
bool wait_for(const Descriptor& socket, short event, Time end) {
  for (;;) {
    const Time rest = end - time_since_boot();
    if (rest <= Time::zero()) return false;
    pollfd waited{socket.get(), event, 0};
    if (::poll(&waited, 1, static_cast<int>(rest.count()) + 1) == 1) return true;
  }
}

/// `no route to host`
std::string reason_of(int number) {
  std::string words = std::strerror(number);
  words.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(words.front())));
  return words;
}

constexpr const char* kNoAnswer = "no answer";

/// Why no connection was made; or empty.
std::string connect_to(const Descriptor& socket, const Address& address, Time end) {
  if (!socket.is_open()) return reason_of(errno);
  if (::connect(socket.get(), address.get(), address.size) == 0) return {};
  if (errno != EINPROGRESS) return reason_of(errno);
  if (!wait_for(socket, POLLOUT, end)) return kNoAnswer;
  int reason = 0;
  socklen_t size = sizeof reason;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &size);
  return reason == 0 ? "" : reason_of(reason);
}

/// Why who listens has not proven itself; or empty.
std::string greet(const Descriptor& socket, const ReachRequest& request, Time end) {
  const std::string hello = make_hello(request.token.text, static_cast<int>(request.place));
  if (::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(hello.size()))
    return kNoAnswer;
  std::string welcome;
  while (welcome.size() < kWelcomeSize) {
    if (!wait_for(socket, POLLIN, end)) return kNoAnswer;
    std::string piece(kWelcomeSize - welcome.size(), '\0');
    const ssize_t size = ::recv(socket.get(), piece.data(), piece.size(), 0);
    if (size <= 0) return "something else listens there";
    welcome.append(piece, 0, static_cast<std::size_t>(size));
  }
  return is_welcome(request.token.text, hello, welcome) ? "" : "something else answers there";
}

}  // namespace

ListenReply listen_for_trial(const ListenRequest& request) {
  constexpr std::int64_t kLongest = 3600;
  ListenReply reply;
  reply.interface = interface_of(request.address);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error(with_reason("no pipe"));
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  const Time end = time_since_boot() + std::chrono::seconds(std::min(request.seconds, kLongest));
  const pid_t child = ::fork();
  if (child == -1) throw std::runtime_error(with_reason("no process can be made"));
  if (child == 0) listen_until(request, end, std::move(writer));
  writer = Descriptor();
  reply.fault = read_some(reader.get()).value_or("");
  if (reply.fault.empty()) {
    reply.pid = child;
  } else {
    ::waitpid(child, nullptr, 0);
  }
  return reply;
}

HostClock tell_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return {static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec};
}

ReachReply reach_for_trial(const ReachRequest& request) {
  ReachReply reply;
  if (request.address.empty()) return reply;
  const Address address = parse_address(request.address, check_port(request.port));
  if (address.size == 0) throw std::runtime_error(request.address + " is no numeric address");
  reply.interface = interface_of(local_address_towards(address));
  const Time end = time_since_boot() + Time(request.timeout_ms);
  const Descriptor socket(
      ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  reply.fault = connect_to(socket, address, end);
  if (reply.fault.empty()) reply.fault = greet(socket, request, end);
  reply.is_reached = reply.fault.empty();
  return reply;
}

}  // namespace dtool::host
