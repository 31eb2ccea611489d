// SPDX-License-Identifier: MIT
// A package: bytes that follow a request, made once for all hosts that are sent the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ssh/remote.h"
#include "sync/package_writer.h"

namespace dtool::tree_sync {

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
  std::size_t files = 0;                         ///< in the package
  std::uint64_t bytes = 0;                       ///< of them, uncompressed
  std::uint64_t expected = 0;                    ///< estimated size before compression
  std::string key = {};                          ///< of a sealed package; else empty
  std::shared_ptr<std::optional<Sum>> sum = {};  ///< of a sealed package; set once the package was
                                                 ///< made
};

}  // namespace dtool::tree_sync
