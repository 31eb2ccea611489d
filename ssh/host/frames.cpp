#include "ssh/host/frames.h"

#include <cstdint>

namespace dtool::host {
namespace {

constexpr std::size_t kHead = 6;

std::uint32_t read_bytes(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i)
    value = value << 8U | static_cast<unsigned char>(bytes[i - 1]);
  return value;
}

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
  std::string frame;
  frame.reserve(kHead + body.size());
  for (std::size_t i = 0; i < 4; ++i) frame += static_cast<char>(body.size() >> 8 * i & 0xffU);
  for (std::size_t i = 0; i < 2; ++i)
    frame += static_cast<char>(static_cast<unsigned>(kind) >> 8 * i & 0xffU);
  return frame.append(body);
}

std::optional<Frame> FrameReader::next() {
  const std::string_view rest = std::string_view(held_).substr(read_);
  if (rest.size() < kHead) return std::nullopt;
  const std::size_t size = read_bytes(rest.substr(0, 4));
  const auto kind = static_cast<Kind>(read_bytes(rest.substr(4, 2)));
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
