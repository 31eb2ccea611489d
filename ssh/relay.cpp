#include "ssh/relay.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace dtool::ssh {

asio::awaitable<bool> write_all(Reactor& reactor, int fd, std::string_view bytes,
                                Deadline deadline) {
  Waiter waiter(reactor, fd);
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return false;
    const auto outcome = co_await waiter.wait(Waiter::For::writable, deadline);
    if (outcome == Waiter::Outcome::deadline_passed) co_return false;
  }
  co_return true;
}

asio::awaitable<void> read_all(Reactor& reactor, int fd,
                               std::function<void(std::string_view)> on_bytes,
                               const Deadline* deadline) {
  Waiter waiter(reactor, fd);
  std::array<char, 32'768> bytes;
  for (;;) {
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count > 0) {
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
