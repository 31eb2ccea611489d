// SPDX-License-Identifier: MIT
#include "ssh/host/tree/passed_on.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "killfiles/channel/channel.h"
#include "killfiles/channel/sha256.h"
#include "ssh/host/network.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kForAnswer{3};
constexpr std::chrono::seconds kForFirst{10};  // bytes: the other host may have none yet
constexpr std::chrono::seconds kForMore{30};
constexpr std::uint64_t kPassedStep = 262'144;  // so many bytes have to come in that time

/// Throws NotGiven if nothing comes; `on_second` is called while it waits.
void await(const Descriptor& socket, short event, std::chrono::seconds patience,
           const std::string& from, const std::function<void()>& on_second) {
  for (std::chrono::seconds waited = 0s; waited < patience; ++waited) {
    pollfd polled{socket.get(), event, 0};
    if (::poll(&polled, 1, 1000) > 0) return;
    on_second();
  }
  throw NotGiven("no answer from " + from + " for " + std::to_string(patience.count()) + " s");
}

Descriptor connect_to(const RelayPart::Parent& parent, int number, const std::string& from) {
  const Address address = parse_address(parent.address, parent.port);
  const int family = address.size == 0 ? AF_INET : address.bytes.ss_family;
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int reason = 0;
  if (::connect(socket.get(), address.get(), address.size) != 0 && errno != EINPROGRESS)
    reason = errno;
  if (reason == 0) {
    await(socket, POLLOUT, kForAnswer, from, [] {});
    socklen_t size = sizeof reason;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &size);
  }
  if (reason != 0) throw NotGiven("no connection to " + from + ": " + std::strerror(reason));
  const std::string hello = make_hello(parent.secret.text, number);
  if (::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(hello.size()))
    throw NotGiven(from + " broke off");
  await(socket, POLLIN, kForAnswer, from, [] {});
  std::string welcome(kWelcomeSize, '\0');  // it comes in one piece, as the first of a connection
  const ssize_t size = ::recv(socket.get(), welcome.data(), welcome.size(), 0);
  if (size == 0 || (size < 0 && errno == ECONNRESET)) throw NotGiven(from + " broke off");
  if (size != static_cast<ssize_t>(kWelcomeSize) || !is_welcome(parent.secret.text, hello, welcome))
    throw NotGiven("something else answers at " + from);
  return socket;
}

}  // namespace

PassedOn::PassedOn(const std::string& path, const RelayPart& part, PackageServer& server,
                   std::function<void(const TreeNews&)> tell)
    : part_(part),
      server_(server),
      tell_(std::move(tell)),
      file_(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) {
  if (!file_.is_open()) throw std::runtime_error(with_reason("cannot make " + path));
  content_.emplace(file_.get());
  server_.add(part.number, file_);
  const std::uint16_t port = server_.port();
  tell_({true, port == 0 ? "" : own_address(), port, 0});
}

void PassedOn::take_from_launcher(FrameInput& input, std::chrono::milliseconds patience) {
  for (;;) {
    const auto frame = input.next(patience);
    if (!frame) throw BadMessage("the package breaks off");
    if (frame->kind != Kind::package_bytes) throw BadMessage("it is not a package");
    write_all(file_.get(), to_frame(frame->kind, frame->body));
    if (frame->body.empty()) return;
  }
}

/// Tells how many bytes have come, once a second. A host that sends a byte now and then would hold
/// this one for days.
void PassedOn::take_from(const RelayPart::Parent& parent, std::chrono::milliseconds patience) {
  const auto for_step = std::min<std::chrono::milliseconds>(kForMore, patience);
  const std::string from = parent.address + ":" + std::to_string(parent.port);
  const Descriptor socket = connect_to(parent, static_cast<int>(part_.number), from);
  Sha256 sha;
  std::uint64_t came = 0;
  std::uint64_t next_step = kPassedStep;
  auto told = Clock::now();
  auto stepped = told;
  while (came < parent.size) {
    if (Clock::now() - stepped > for_step) throw NotGiven(from + " sends too little");
    await(socket, POLLIN, came == 0 ? kForFirst : kForMore, from, [&] {
      tell_({false, "", 0, came});
    });
    std::array<char, 65536> piece;
    const std::size_t most = std::min<std::uint64_t>(piece.size(), parent.size - came);
    const ssize_t size = ::recv(socket.get(), piece.data(), most, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size <= 0) throw NotGiven(from + " broke off");
    const std::string_view bytes(piece.data(), static_cast<std::size_t>(size));
    sha.add(bytes);
    write_all(file_.get(), bytes);
    came += bytes.size();
    if (came >= next_step) {
      next_step = came + kPassedStep;
      stepped = Clock::now();
    }
    const bool is_first = came == bytes.size();
    if (!is_first && Clock::now() - told < 1s && came < parent.size) continue;
    told = Clock::now();
    tell_({false, "", 0, came});
  }
  if (to_hex(sha.finish()) != parent.sha256)
    throw NotGiven("what " + from + " sent is not the package", true);
}

void PassedOn::get(FrameInput& input, std::chrono::milliseconds patience) {
  if (part_.parent) {
    take_from(*part_.parent, patience);
  } else {
    take_from_launcher(input, patience);
  }
  ::lseek(file_.get(), 0, SEEK_SET);
}

}  // namespace dtool::host
