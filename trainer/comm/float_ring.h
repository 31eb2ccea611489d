// A queue of numbers in memory that two processes share: one writes, the other reads. No system
// call, no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dtool::trainer {

/// Lies in the shared memory as it is; all zeros is empty.
class FloatRing {
 public:
  static constexpr std::size_t kCapacity = 65536;  ///< numbers: 256 KiB, which stays in the cache

  /// Copies as many of `numbers` as there is room for; returns how many.
  std::size_t write(std::span<const float> numbers);

  /// What has been written and not taken, up to the end of the memory; more may follow at its
  /// beginning.
  std::span<const float> readable() const;

  /// Gives the room of the first `count` readable numbers back.
  void take(std::size_t count);

  bool has_room() const;

 private:
  // Counted from the beginning of time, each written by one side only and alone on its cache line.
  alignas(64) std::atomic<std::uint64_t> written_;
  alignas(64) std::atomic<std::uint64_t> taken_;
  alignas(64) float numbers_[kCapacity];
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace dtool::trainer
