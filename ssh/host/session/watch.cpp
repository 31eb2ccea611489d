// SPDX-License-Identifier: MIT
#include "ssh/host/session/watch.h"

#include <sys/epoll.h>

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

std::vector<int> Watch::wait(Time patience, const sigset_t& mask) {
  std::array<epoll_event, kMostEvents> events;
  const int count = ::epoll_pwait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                  static_cast<int>(patience.count()), &mask);
  std::vector<int> ready;
  for (int i = 0; i < count; ++i) ready.push_back(events.at(static_cast<std::size_t>(i)).data.fd);
  return ready;
}

}  // namespace dtool::host
