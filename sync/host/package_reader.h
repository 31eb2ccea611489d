// What is in a package: the bytes that a launcher sends after a request are frames, which zstd may
// have compressed together.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "ssh/host/frames.h"
#include "sync/host/cipher.h"

struct ZSTD_DCtx_s;

namespace dtool::host {

/// Whether this program has zstd inside. One that was built for another processor may lack it.
bool reads_zstd();

enum class Compressed { no, yes };

class PackageReader {
 public:
  /// `patience`: with an input from which not a byte comes. `key`: that the package is sealed with;
  /// or empty.
  PackageReader(FrameInput& input, std::chrono::milliseconds patience, Compressed compressed,
                const std::string& key = {});

  /// The next frame; nothing at the package's end. Throws BadMessage if it is not a whole
  /// package.
  std::optional<Frame> next();

 private:
  bool add_more();
  void decompress();

  FrameInput& input_;
  std::chrono::milliseconds patience_;
  std::unique_ptr<ZSTD_DCtx_s, void (*)(ZSTD_DCtx_s*)> decompressor_;
  std::optional<Cipher> cipher_;
  std::string bytes_;      ///< that have come,
  std::size_t taken_ = 0;  ///< and that were taken
  bool is_at_end_ = true;  ///< of what was compressed together
  FrameReader frames_;
};

/// The names in a package that has nothing else, sorted.
std::vector<std::string> read_names(PackageReader package);

}  // namespace dtool::host
