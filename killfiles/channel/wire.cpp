// SPDX-License-Identifier: MIT
#include "killfiles/channel/wire.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

namespace dtool::host {

namespace {

constexpr std::size_t kMostEvents = 256;

epoll_event event_of(int descriptor, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  return event;
}

}  // namespace

Watch::Watch() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.is_open()) throw std::runtime_error(with_reason("epoll_create1"));
}

void Watch::add(int descriptor) {
  epoll_event event = event_of(descriptor, EPOLLIN);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
    throw std::runtime_error(with_reason("epoll_ctl"));
}

void Watch::wait_until(int descriptor, Until until) {
  epoll_event event =
      event_of(descriptor, EPOLLIN | (until == Until::readable ? 0U : std::uint32_t{EPOLLOUT}));
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

void Watch::remove(int descriptor) {
  epoll_event event{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, &event);
}

std::vector<int> Watch::wait(std::chrono::milliseconds patience, const sigset_t* mask) const {
  std::array<epoll_event, kMostEvents> events;
  const int count = ::epoll_pwait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                  static_cast<int>(patience.count()), mask);
  std::vector<int> ready;
  for (int i = 0; i < count; ++i) ready.push_back(events.at(static_cast<std::size_t>(i)).data.fd);
  return ready;
}

Wire::Wire(Descriptor socket, Watch& watch) : socket_(std::move(socket)), watch_(&watch) {
  watch.add(socket_.get());
}

Wire::~Wire() {
  if (socket_.is_open()) watch_->remove(socket_.get());
}

Descriptor Wire::release() {
  watch_->remove(socket_.get());
  return std::move(socket_);
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
