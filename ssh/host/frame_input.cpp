// SPDX-License-Identifier: MIT
#include "ssh/host/frame_input.h"

#include <poll.h>

#ifdef DTOOL_ZSTD
#include <zstd.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <utility>

#include "ssh/host/files.h"
#include "ssh/wire/tree.h"

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

#ifdef DTOOL_ZSTD

bool reads_zstd() {
  return true;
}

PackageReader::PackageReader(FrameInput& input, std::chrono::milliseconds patience,
                             Compressed compressed, const std::string& key)
    : input_(input),
      patience_(patience),
      decompressor_(compressed == Compressed::yes ? ::ZSTD_createDCtx() : nullptr,
                    [](ZSTD_DCtx* each) { ::ZSTD_freeDCtx(each); }) {
  constexpr int kLargestWindow = 23;  // the launcher's is 2 MiB; a stranger's could be all memory
  if (!key.empty()) cipher_.emplace(key);
  if (decompressor_ == nullptr) return;
  piece_.resize(131'072);
  ::ZSTD_DCtx_setParameter(decompressor_.get(), ZSTD_d_windowLogMax, kLargestWindow);
}

void PackageReader::decompress() {
  ZSTD_inBuffer in{bytes_.data(), bytes_.size(), taken_};
  ZSTD_outBuffer out{piece_.data(), piece_.size(), 0};
  const std::size_t result = ::ZSTD_decompressStream(decompressor_.get(), &out, &in);
  if (::ZSTD_isError(result) != 0)
    throw BadMessage(std::string("zstd: ") + ::ZSTD_getErrorName(result));
  taken_ = in.pos;
  is_at_end_ = result == 0;
  frames_.add({piece_.data(), out.pos});
}

#else

bool reads_zstd() {
  return false;
}

PackageReader::PackageReader(FrameInput& input, std::chrono::milliseconds patience,
                             Compressed compressed, const std::string& key)
    : input_(input), patience_(patience), decompressor_(nullptr, nullptr) {
  if (compressed == Compressed::yes) throw BadMessage("this dtool-host was built without zstd");
  if (!key.empty()) cipher_.emplace(key);
}

void PackageReader::decompress() {}

#endif

/// False at the end.
bool PackageReader::add_more() {
  if (taken_ == bytes_.size()) {
    const auto frame = input_.next(patience_);
    if (!frame) throw BadMessage("the package breaks off");
    if (frame->kind != Kind::package_bytes) throw BadMessage("it is not a package");
    if (frame->body.empty()) return false;
    bytes_ = frame->body;
    taken_ = 0;
    if (cipher_) cipher_->apply(bytes_.data(), bytes_.size());
  }
  if (decompressor_ != nullptr) {
    decompress();
  } else {
    frames_.add(bytes_);
    taken_ = bytes_.size();
  }
  return true;
}

std::optional<Frame> PackageReader::next() {
  for (;;) {
    if (auto frame = frames_.next()) return frame;
    if (!add_more()) break;
  }
  if (!is_at_end_ || frames_.is_inside()) throw BadMessage("the package is not whole");
  return std::nullopt;
}

std::vector<std::string> read_names(PackageReader package) {
  std::vector<std::string> names;
  while (const auto frame = package.next())
    std::ranges::move(open<Names>(*frame).names, std::back_inserter(names));
  std::ranges::sort(names);
  return names;
}

}  // namespace dtool::host
