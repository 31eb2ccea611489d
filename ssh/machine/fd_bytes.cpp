// SPDX-License-Identifier: MIT
#include "ssh/machine/fd_bytes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

namespace dtool::ssh {
namespace {

/// The usual capacity of a pipe: that much may have come before the deadline.
constexpr std::size_t kPipe = 65'536;

}  // namespace

asio::awaitable<bool> write_all(Reactor& reactor, int fd, std::string_view bytes,
                                Deadline deadline) {
  std::optional<Waiter> waiter;  // most writes need none
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return false;
    if (!waiter) waiter.emplace(reactor, fd);
    const auto outcome = co_await waiter->wait(Waiter::For::writable, deadline);
    if (outcome == Waiter::Outcome::deadline_passed) co_return false;
  }
  co_return true;
}

asio::awaitable<void> read_all(Reactor& reactor, int fd,
                               std::function<void(std::string_view)> on_bytes,
                               const Deadline* deadline) {
  Waiter waiter(reactor, fd);
  std::array<char, 32'768> bytes;
  std::size_t late = 0;
  for (;;) {
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count > 0) {
      if (Clock::now() >= *deadline) late += static_cast<std::size_t>(count);
      if (late > kPipe) co_return;
      co_await reactor.yield();
      on_bytes(std::string_view(bytes.data(), static_cast<std::size_t>(count)));
      continue;
    }
    if (count == 0) co_return;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return;
    if (Clock::now() >= *deadline) co_return;
    const Deadline soon = std::min(*deadline, after(std::chrono::milliseconds(200)));
    co_await waiter.wait(Waiter::For::readable, soon);
  }
}

}  // namespace dtool::ssh
