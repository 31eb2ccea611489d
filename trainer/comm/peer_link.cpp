// SPDX-License-Identifier: MIT
// A side that is about to sleep sets its flag and checks the ring once more. A side that writes or
// takes does so and then checks the flag. All these accesses are sequentially consistent, so at
// least one side sees the other's.
#include "trainer/comm/peer_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace dtool::trainer {

namespace {

constexpr std::size_t kCameNumbers = 65536;

// The other side begins to take numbers while the rest is still being written.
constexpr std::size_t kPiece = 8192;

[[noreturn]] void peer_is_gone() {
  throw std::runtime_error("closed its connection");
}

[[noreturn]] void fail(const char* what) {
  if (errno == ECONNRESET || errno == EPIPE) peer_is_gone();
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

PeerLink::PeerLink(host::Descriptor socket) : socket_(std::move(socket)), came_(kCameNumbers) {}

PeerLink::PeerLink(host::Descriptor socket, SharedMemory memory, int side)
    : socket_(std::move(socket)), memory_(std::move(memory)), side_(side) {}

std::size_t PeerLink::try_send(const float* numbers, std::size_t count) {
  if (!memory_) return send_by_tcp(numbers, count);
  const std::size_t sent = shared().rings[side_].write({numbers, std::min(count, kPiece)});
  if (sent > 0) {
    wake_peer();
  } else if (is_closed_) {
    peer_is_gone();
  }
  return sent;
}

std::size_t PeerLink::try_receive(float* into, std::size_t count, Combine how) {
  if (!memory_) return receive_by_tcp(into, count, how);
  FloatRing& ring = shared().rings[1 - side_];
  const auto there = ring.readable();
  const std::size_t received = std::min(there.size(), count);
  if (received == 0) {
    if (is_closed_) peer_is_gone();
    return 0;
  }
  combine(into, there.data(), received, how);
  ring.take(received);
  wake_peer();
  return received;
}

void PeerLink::wake_peer() {
  auto& sleeps = shared().sleeps[1 - side_];
  if (sleeps.load() == 0 || sleeps.exchange(0) == 0) return;
  const char nudge = 0;
  // If it does not fit, the peer has enough bytes to wake it; a peer that is gone is noticed when
  // reading.
  [[maybe_unused]] const auto sent = send(socket_.get(), &nudge, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool PeerLink::prepare_sleep(Awaited awaited) {
  if (!memory_) return came_bytes_ < sizeof(float) || awaited == Awaited::room;
  shared().sleeps[side_].store(1);
  const bool there = awaited == Awaited::room ? shared().rings[side_].has_room()
                                              : !shared().rings[1 - side_].readable().empty();
  return !there;
}

short PeerLink::poll_events(Awaited awaited) const {
  return !memory_ && awaited == Awaited::room ? POLLOUT : POLLIN;
}

void PeerLink::finish_sleep(short events) {
  if (!memory_) return;
  shared().sleeps[side_].store(0);
  if (events == 0) return;
  char nudges[64];
  const auto received = recv(socket_.get(), nudges, sizeof nudges, MSG_DONTWAIT);
  is_closed_ = received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR);
}

std::size_t PeerLink::send_by_tcp(const float* numbers, std::size_t count) {
  const auto* bytes = reinterpret_cast<const std::byte*>(numbers);
  const auto sent = send(socket_.get(), bytes + bytes_gone_, count * sizeof(float) - bytes_gone_,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (errno == EAGAIN || errno == EINTR) return 0;
    fail("cannot send");
  }
  const std::size_t gone = bytes_gone_ + static_cast<std::size_t>(sent);
  bytes_gone_ = gone % sizeof(float);
  return gone / sizeof(float);
}

std::size_t PeerLink::receive_by_tcp(float* into, std::size_t count, Combine how) {
  if (came_bytes_ < sizeof(float)) refill();
  const std::size_t received = std::min(came_bytes_ / sizeof(float), count);
  combine(into, came_.data() + came_begin_, received, how);
  came_begin_ += received;
  came_bytes_ -= received * sizeof(float);
  return received;
}

void PeerLink::refill() {
  auto* bytes = reinterpret_cast<std::byte*>(came_.data());
  std::memmove(bytes, bytes + came_begin_ * sizeof(float), came_bytes_);
  came_begin_ = 0;
  const auto received = recv(socket_.get(), bytes + came_bytes_,
                             kCameNumbers * sizeof(float) - came_bytes_, MSG_DONTWAIT);
  if (received > 0) {
    came_bytes_ += static_cast<std::size_t>(received);
  } else if (received == 0) {
    peer_is_gone();
  } else if (errno != EAGAIN && errno != EINTR) {
    fail("cannot receive");
  }
}

// The counts are sequentially consistent. Before a side sleeps, it sets its flag and looks once
// more (PeerLink::prepare_sleep), and these two steps must not be reordered.

std::size_t FloatRing::write(std::span<const float> numbers) {
  const std::uint64_t written = written_.load(std::memory_order_relaxed);
  const std::size_t room = kCapacity - (written - taken_.load());
  const std::size_t begin = written % kCapacity;
  const std::size_t count = std::min({numbers.size(), room, kCapacity - begin});
  if (count == 0) return 0;
  std::memcpy(numbers_ + begin, numbers.data(), count * sizeof(float));
  written_.store(written + count);
  return count;
}

std::span<const float> FloatRing::readable() const {
  const std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  const std::size_t begin = taken % kCapacity;
  const std::size_t count = std::min<std::size_t>(written_.load() - taken, kCapacity - begin);
  return {numbers_ + begin, count};
}

void FloatRing::take(std::size_t count) {
  taken_.store(taken_.load(std::memory_order_relaxed) + count);
}

bool FloatRing::has_room() const {
  return written_.load(std::memory_order_relaxed) - taken_.load() < kCapacity;
}

}  // namespace dtool::trainer
