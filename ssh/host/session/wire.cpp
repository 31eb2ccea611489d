// SPDX-License-Identifier: MIT
#include "ssh/host/session/wire.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace dtool::host {

Wire::Wire(Descriptor socket, Watch& watch) : socket_(std::move(socket)), watch_(&watch) {
  watch.add(socket_.get());
}

Wire::~Wire() {
  if (socket_.is_open()) watch_->remove(socket_.get());
}

Wire::Read Wire::read(std::string& bytes, std::size_t most) {
  std::array<char, 65536> piece;
  for (;;) {
    const ssize_t size = ::recv(socket_.get(), piece.data(), std::min(most, piece.size()), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Read::nothing_yet;
    if (size <= 0) return Read::closed;
    bytes.append(piece.data(), static_cast<std::size_t>(size));
    return Read::some;
  }
}

bool Wire::write(std::string_view bytes, std::size_t most) {
  unsent_ += bytes;
  return flush() && unsent_.size() <= most;
}

bool Wire::flush() {
  const bool waited = !unsent_.empty();
  while (!unsent_.empty()) {
    const ssize_t size =
        ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (size < 0) return false;
    unsent_.erase(0, static_cast<std::size_t>(size));
  }
  if (waited) wait_until(unsent_.empty() ? Until::readable : Until::readable_or_writable);
  return true;
}

}  // namespace dtool::host
