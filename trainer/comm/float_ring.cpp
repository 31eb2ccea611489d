// SPDX-License-Identifier: MIT
// The counts are sequentially consistent. Before a side sleeps, it sets its flag and looks once
// more, and these two steps must not be reordered (peer_link.cpp).
#include "trainer/comm/float_ring.h"

#include <algorithm>
#include <cstring>

namespace dtool::trainer {

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
