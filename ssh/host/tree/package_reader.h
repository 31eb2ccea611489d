// SPDX-License-Identifier: MIT
// Reads a package: the bytes that a launcher sends after a request. They are frames, which zstd may
// have compressed together.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "ssh/host/frame_input.h"
#include "ssh/host/tree/cipher.h"
#include "ssh/wire/protocol.h"

struct ZSTD_DCtx_s;

namespace dtool::host {

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
