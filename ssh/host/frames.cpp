// SPDX-License-Identifier: MIT
#include "ssh/host/frames.h"

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ssh/host/files.h"

namespace dtool::host {
namespace {

constexpr std::size_t kHead = 6;

void check(Kind kind, std::size_t size) {
  const std::string name = std::to_string(static_cast<int>(kind));
  if (longest_body(kind) == 0) throw BadMessage("there is no message of kind " + name);
  if (size > longest_body(kind))
    throw BadMessage("a message of kind " + name + " has " + std::to_string(size) +
                     " bytes, and may have " + std::to_string(longest_body(kind)));
}

}  // namespace

std::string to_frame(Kind kind, std::string_view body) {
  check(kind, body.size());
  std::string frame = number_bytes(body.size(), 4) + number_bytes(static_cast<unsigned>(kind), 2);
  return frame.append(body);
}

BadMessage as_error(Fault fault) {
  for (std::string* text : {&fault.sentence, &fault.hint}) std::ranges::replace(*text, '\0', '?');
  return BadMessage(fault.sentence.empty() ? "the host refuses without a reason" : fault.sentence,
                    fault.hint);
}

std::optional<Frame> FrameReader::next() {
  const std::string_view rest = std::string_view(held_).substr(read_);
  if (rest.size() < kHead) return std::nullopt;
  const std::size_t size = read_number_bytes(rest.substr(0, 4));
  const auto kind = static_cast<Kind>(read_number_bytes(rest.substr(4, 2)));
  check(kind, size);
  if (rest.size() - kHead < size) return std::nullopt;
  Frame frame{kind, std::string(rest.substr(kHead, size))};
  read_ += kHead + size;
  if (read_ == held_.size() || read_ > std::size_t{1} << 20U) {
    held_.erase(0, read_);
    read_ = 0;
  }
  return frame;
}

void FrameInput::await(std::chrono::milliseconds patience) const {
  constexpr std::chrono::milliseconds kSecond{1000};
  for (auto left = patience;; left -= kSecond) {
    pollfd input{descriptor_, POLLIN, 0};
    if (::poll(&input, 1, static_cast<int>(std::min(left, kSecond).count())) != 0) return;
    if (left <= kSecond)
      throw BadMessage("no byte more for " + std::to_string(patience.count() / 1000) + " s");
    if (on_wait_) on_wait_();
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
