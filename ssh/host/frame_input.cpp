// SPDX-License-Identifier: MIT
#include "ssh/host/frame_input.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "ssh/host/files.h"

namespace dtool::host {

void FrameInput::await(std::chrono::milliseconds patience) const {
  constexpr std::chrono::milliseconds kSecond{1000};
  for (auto left = patience;; left -= kSecond) {
    pollfd input{descriptor_, POLLIN, 0};
    int ready = -1;
    do ready = ::poll(&input, 1, static_cast<int>(std::min(left, kSecond).count()));
    while (ready < 0 && errno == EINTR);
    if (ready != 0) return;
    if (left <= kSecond)
      throw BadMessage("no byte more for " + std::to_string(patience.count() / 1000) + " s");
    if (on_wait_) on_wait_(patience - left + kSecond);
  }
}

std::optional<Frame> FrameInput::next(std::optional<std::chrono::milliseconds> patience) {
  while (!is_left_) {
    if (auto frame = reader_.next()) return frame;
    if (patience) await(*patience);
    const auto bytes = read_some(descriptor_);
    if (!bytes && reader_.is_inside()) throw BadMessage("the request ends too soon");
    if (!bytes) break;
    reader_.add(*bytes);
  }
  return std::nullopt;
}

bool FrameInput::skip_to_end_of_requests() {
  constexpr std::size_t kMost = 1U << 20U;
  constexpr std::chrono::seconds kPatience{1};
  if (!std::exchange(is_left_, false)) return false;
  const auto end = std::chrono::steady_clock::now() + 2 * kPatience;
  std::size_t skipped = 0;
  try {
    while (const auto frame = next(kPatience)) {
      if (frame->kind == Kind::end_of_requests) return true;
      skipped += frame->body.size();
      if (skipped > kMost || std::chrono::steady_clock::now() > end) break;
    }
  } catch (const BadMessage&) {  // it was left in the middle, or nothing comes
  }
  return false;
}

}  // namespace dtool::host
