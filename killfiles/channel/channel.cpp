// SPDX-License-Identifier: MIT
#include "killfiles/channel/channel.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "killfiles/channel/wire.h"
#include "ssh/wire/message.h"

namespace dtool::host {
namespace {

constexpr std::string_view kMagic = "dtool 1\n";
constexpr std::size_t kNonceSize = 16;
constexpr std::size_t kProofSize = 32;
constexpr std::size_t kLengthSize = 4;
static_assert(kEmptyFrameSize == kLengthSize + kProofSize);

Digest prove(std::string_view key, std::string_view label, std::string_view bytes) {
  return hmac_sha256(key, std::string(label).append("\n").append(bytes));
}

Digest proof_of_frame(const Digest& key, std::uint64_t number, std::string_view body) {
  return hmac_sha256(bytes_of(key), number_bytes(number, 8).append(body));
}

}  // namespace

std::string random_bytes() {
  std::string bytes(kNonceSize, '\0');
  const auto all = static_cast<ssize_t>(bytes.size());
  // This needs no descriptor, of which there may be none left. Linux before 3.17 lacks it.
  if (::getrandom(bytes.data(), bytes.size(), GRND_NONBLOCK) == all) return bytes;
  const Descriptor source(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  if (::read(source.get(), bytes.data(), bytes.size()) != all)
    throw std::runtime_error("/dev/urandom has no random numbers");
  return bytes;
}

std::string make_hello(std::string_view token, int place) {
  std::string hello(kMagic);
  hello += number_bytes(static_cast<std::uint64_t>(place), 8) + random_bytes();
  return hello.append(bytes_of(prove(token, "hello of a machine", hello)));
}

bool may_be_hello(std::string_view beginning) {
  const std::size_t size = std::min(beginning.size(), kMagic.size());
  return beginning.substr(0, size) == kMagic.substr(0, size);
}

std::optional<int> read_hello(std::string_view token, std::string_view hello) {
  if (hello.size() != kHelloSize || !may_be_hello(hello)) return std::nullopt;
  const std::string_view said = hello.substr(0, kHelloSize - kProofSize);
  const Digest proof = prove(token, "hello of a machine", said);
  if (!are_equal(hello.substr(said.size()), bytes_of(proof))) return std::nullopt;
  const std::uint64_t place = read_number_bytes(said.substr(kMagic.size(), 8));
  constexpr std::uint64_t kLastPlace = 1'000'000;
  return place > kLastPlace ? std::nullopt : std::optional(static_cast<int>(place));
}

std::string make_welcome(std::string_view token, std::string_view hello) {
  std::string welcome = random_bytes();
  const Digest proof = prove(token, "welcome of machine 0", welcome + std::string(hello));
  return welcome.append(bytes_of(proof));
}

bool is_welcome(std::string_view token, std::string_view hello, std::string_view welcome) {
  if (welcome.size() != kWelcomeSize) return false;
  const std::string nonce(welcome.substr(0, kNonceSize));
  const Digest proof = prove(token, "welcome of machine 0", nonce + std::string(hello));
  return are_equal(welcome.substr(kNonceSize), bytes_of(proof));
}

Channel::Channel(std::string_view token, std::string_view hello, std::string_view welcome, End end,
                 std::size_t longest)
    : longest_(longest) {
  const std::string greeting = std::string(hello).append(welcome);
  sending_ = prove(token, "frames to machine 0", greeting);
  receiving_ = prove(token, "frames from machine 0", greeting);
  if (end == End::coordinator) std::swap(sending_, receiving_);
}

std::string Channel::seal(std::string_view body) {
  std::string frame = number_bytes(body.size(), kLengthSize).append(body);
  return frame.append(bytes_of(proof_of_frame(sending_, sent_++, body)));
}

std::optional<std::string> Channel::next() {
  if (held_.size() < kLengthSize) return std::nullopt;
  const auto size =
      static_cast<std::size_t>(read_number_bytes(std::string_view(held_).substr(0, kLengthSize)));
  if (size > longest_) throw BadMessage("a frame is too long");
  if (held_.size() < kLengthSize + size + kProofSize) return std::nullopt;
  std::string body = held_.substr(kLengthSize, size);
  const Digest proof = proof_of_frame(receiving_, received_++, body);
  if (!are_equal(std::string_view(held_).substr(kLengthSize + size, kProofSize), bytes_of(proof)))
    throw BadMessage("a frame is not proven");
  held_.erase(0, kLengthSize + size + kProofSize);
  return body;
}

}  // namespace dtool::host
