// SPDX-License-Identifier: MIT
// Writes packages as they are sent to hosts (ssh/wire/protocol.h): frames, which zstd may compress
// together, inside frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/host/cipher.h"
#include "ssh/remote.h"

struct ZSTD_CCtx_s;

namespace dtool::tree_sync {

/// How packages are compressed: a form that the host can read.
enum class Compression { none, zstd };

class PackageWriter {
 public:
  /// `write` takes the bytes. `key`: seals the bytes; empty: they are not sealed. Packages above a
  /// certain `expected` size (in bytes) are compressed on all cores.
  PackageWriter(ssh::SharedBytes::Write write, Compression compression, std::string_view key,
                std::uint64_t expected);

  /// Adds a frame.
  void add(std::string_view frame) { compress(frame, false); }
  void finish();

 private:
  void compress(std::string_view bytes, bool is_end);
  void send(char* bytes, std::size_t size);

  ssh::SharedBytes::Write write_;
  std::optional<host::Cipher> cipher_;
  std::unique_ptr<ZSTD_CCtx_s, void (*)(ZSTD_CCtx_s*)> compressor_;
  std::string piece_;
};

/// A package that has only names. `names` must outlive it.
std::shared_ptr<const ssh::SharedBytes> pack_names(const std::vector<std::string>& names,
                                                   Compression compression);

/// Adds names to a package, in as many frames as needed.
void add_names(PackageWriter& package, const std::vector<std::string>& names);

// A package: bytes that follow a request, made once for all hosts that are sent the same.

/// Whether a package is encrypted, for hosts to pass on.
enum class Seal { no, yes };

/// With this a host checks a package that it got from another host.
struct Sum {
  std::uint64_t bytes = 0;
  std::string sha256;  ///< hex
};

struct Package {
  std::shared_ptr<const ssh::SharedBytes> content;
  Compression compression = Compression::zstd;
  std::size_t files = 0;       ///< the number of files in the package
  std::uint64_t bytes = 0;     ///< the sum of these files' sizes, uncompressed
  std::uint64_t expected = 0;  ///< estimated size before compression
  std::string key = {};        ///< the key of a sealed package; else empty
  /// The sum of a sealed package; set once the package was made.
  std::shared_ptr<std::optional<Sum>> sum = {};
};

}  // namespace dtool::tree_sync
