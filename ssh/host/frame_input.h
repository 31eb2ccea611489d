// SPDX-License-Identifier: MIT
// The frames that dtool-host reads: from a descriptor, and from a package.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ssh/host/cipher.h"
#include "ssh/wire/protocol.h"

struct ZSTD_DCtx_s;

namespace dtool::host {

/// The frames that arrive on a descriptor.
class FrameInput {
 public:
  explicit FrameInput(int descriptor) : descriptor_(descriptor) {}

  /// The next frame; nothing at the end. Throws BadMessage as FrameReader does, if the stream ends
  /// inside a frame, and if no byte comes within `patience`; std::runtime_error if reading fails.
  std::optional<Frame> next(std::optional<std::chrono::milliseconds> patience = std::nullopt);
  /// Ignores all later frames.
  void leave() { is_left_ = true; }
  /// After leave(): passes over all frames up to the next EndOfRequests. False if none comes soon,
  /// within a mebibyte; the input is useless then.
  bool skip_to_end_of_requests();
  /// Called each second while next() waits with patience, with the time without a byte; what it
  /// throws ends the wait.
  using OnWait = std::function<void(std::chrono::milliseconds)>;
  void set_on_wait(OnWait on_wait) { on_wait_ = std::move(on_wait); }

 private:
  void await(std::chrono::milliseconds patience) const;

  int descriptor_;
  OnWait on_wait_ = {};
  FrameReader reader_ = {};
  bool is_left_ = false;
};

// Reads a package: the bytes that a launcher sends after a request. They are frames, which zstd may
// have compressed together.

/// Whether this program contains zstd. A build for another processor may lack it.
bool reads_zstd();

enum class Compressed { no, yes };

class PackageReader {
 public:
  /// `patience`: how long to wait for the next byte. `key`: the key that sealed the package; or
  /// empty.
  PackageReader(FrameInput& input, std::chrono::milliseconds patience, Compressed compressed,
                const std::string& key = {});

  /// The next frame; nothing at the package's end. Throws BadMessage if the package is incomplete
  /// or malformed.
  std::optional<Frame> next();

 private:
  bool add_more();
  void decompress();

  FrameInput& input_;
  std::chrono::milliseconds patience_;
  std::unique_ptr<ZSTD_DCtx_s, void (*)(ZSTD_DCtx_s*)> decompressor_;
  std::optional<Cipher> cipher_;
  std::string piece_;      ///< the last decompressed bytes; two threads may read two packages
  std::string bytes_;      ///< received bytes,
  std::size_t taken_ = 0;  ///< the number of received bytes that were taken
  bool is_at_end_ = true;  ///< the reader is at the end of the compressed data
  FrameReader frames_;
};

/// Reads a package that has only names, sorted.
std::vector<std::string> read_names(PackageReader package);

}  // namespace dtool::host
