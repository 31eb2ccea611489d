// SPDX-License-Identifier: MIT
// A queue of numbers in shared memory of two processes: one writes, the other reads. No system
// calls, no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dtool::trainer {

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

}  // namespace dtool::trainer
