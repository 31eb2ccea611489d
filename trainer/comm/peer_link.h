// SPDX-License-Identifier: MIT
// The link to one other rank: numbers go through shared memory if both ranks are on one machine,
// else through a TCP connection. With shared memory the connection stays open, to wake a sleeping
// rank and to notice that a rank is gone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "killfiles/channel/wire.h"
#include "trainer/comm/exchange_plan.h"
#include "trainer/ranks/shared_memory.h"

namespace dtool::trainer {

// A queue of numbers in shared memory of two processes: one writes, the other reads. No system
// calls, no lock.

/// Used directly in the shared memory; all zeros is an empty queue.
class FloatRing {
 public:
  static constexpr std::size_t kCapacity = 65536;  ///< numbers: 256 KiB, which stay in the cache

  /// Copies as many of `numbers` as fit; returns how many.
  std::size_t write(std::span<const float> numbers);

  /// The numbers that were written and not taken, up to the end of the memory; more may follow at
  /// its beginning.
  std::span<const float> readable() const;

  /// Frees the space of the first `count` readable numbers.
  void take(std::size_t count);

  bool has_room() const;

 private:
  // Total counts; each is written by one side only and is alone on its cache line.
  alignas(64) std::atomic<std::uint64_t> written_;
  alignas(64) std::atomic<std::uint64_t> taken_;
  alignas(64) float numbers_[kCapacity];
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The content of a link's shared memory. The lower rank of a pair is side 0.
struct SharedLink {
  /// The other side checks with this token that it has mapped the right memory.
  std::uint64_t token;
  std::atomic<std::uint32_t> sleeps[2];  ///< a flag for each side: it wants to be woken
  FloatRing rings[2];                    ///< the index is the side that writes
};

class PeerLink {
 public:
  /// Over TCP: a connected, non-blocking socket that sends small messages at once.
  explicit PeerLink(host::Descriptor socket);
  /// Over `memory`, which holds a SharedLink.
  PeerLink(host::Descriptor socket, SharedMemory memory, int side);

  /// Sends as many of the numbers as possible now; returns how many. Throws std::runtime_error if
  /// the peer is gone.
  std::size_t try_send(const float* numbers, std::size_t count);

  /// Combines the numbers that have arrived, up to `count`, into those at `into`; returns how many.
  /// Throws std::runtime_error if the peer is gone and no numbers are left.
  std::size_t try_receive(float* into, std::size_t count, Combine how);

  bool shares_memory() const { return memory_.has_value(); }

  enum class Awaited { room, numbers };
  /// Call it before sleeping in poll(): asks to be woken. False if there is no need to sleep.
  bool prepare_sleep(Awaited awaited);
  /// Call it after poll(), with the returned `events`.
  void finish_sleep(short events);
  int descriptor() const { return socket_.get(); }
  short poll_events(Awaited awaited) const;

 private:
  SharedLink& shared() const { return *reinterpret_cast<SharedLink*>(memory_->data()); }
  void wake_peer();
  std::size_t send_by_tcp(const float* numbers, std::size_t count);
  std::size_t receive_by_tcp(float* into, std::size_t count, Combine how);
  void refill();

  host::Descriptor socket_;
  std::optional<SharedMemory> memory_;
  int side_ = 0;
  bool is_closed_ = false;      ///< the peer has closed the connection
  std::size_t bytes_gone_ = 0;  ///< TCP: sent bytes of a number that was sent in part
  std::vector<float> came_;     ///< TCP: received bytes; begins at a whole number
  std::size_t came_begin_ = 0;  ///< TCP: the first number that was not taken
  std::size_t came_bytes_ = 0;  ///< TCP: number of bytes from there on
};

}  // namespace dtool::trainer
