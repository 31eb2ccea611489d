// SPDX-License-Identifier: MIT
#include "ssh/wire/protocol.h"

#include <algorithm>
#include <cstdint>

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

}  // namespace dtool::host
