// SPDX-License-Identifier: MIT
// How much of what `dtool copy` sends has this host, and is there room for the rest? Asked before
// anything is sent, and once more at the end, as the proof that all is there.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host/frame_input.h"
#include "ssh/wire/copy.h"

namespace dtool::host {

/// Throws Refused (ssh/host/tree/tree_folder.h) if nothing can be copied to the folder. The listing
/// is read from `input`.
CopyReply answer_copy(const CopyRequest& request, FrameInput& input);

// Which files and links of this machine came by `dtool copy` or `fetch`, and are as they came: a
// later one replaces those, and no others. `~/.dtool/copied` holds eight bytes for each, a hash of
// what the kernel changes when a file is touched. The newest come last.

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
