// SPDX-License-Identifier: MIT
// Which files and links of this machine came by `dtool copy` or `fetch`, and are as they came: a
// later one replaces those, and no others. `~/.dtool/copied` holds eight bytes for each, a hash of
// what the kernel changes when a file is touched. The newest come last.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtool::host {

class CopiedFiles {
 public:
  /// Whether the file came by a copy, and was not touched since. Reads the list once.
  bool has(const struct stat& file);
  /// For keep().
  void add(const struct stat& file);
  /// Adds to the list what it lacks. A full home is no reason to fail: the next copy then asks.
  void keep();

 private:
  void read();

  std::optional<std::vector<std::uint64_t>> known_;  ///< sorted
  std::vector<std::uint64_t> added_;
};

}  // namespace dtool::host
