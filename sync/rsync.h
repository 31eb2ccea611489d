// SPDX-License-Identifier: MIT
// The command line of rsync that fetches files, and the readers of its output.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/remote.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// Whether the other rsync runs on another host or on this one.
enum class Link { network, local };

/// Files of a host that are to be fetched.
struct Source {
  std::string folder;                   ///< the folder on the host: absolute, or from `~/`
  std::string file = {};                ///< its name in the folder; empty: the whole folder
  std::vector<std::string> only = {};   ///< patterns of rsync's filters; empty: everything
  std::vector<std::string> files = {};  ///< several names; empty: as `file` says
  std::string left_out = {};            ///< a name in the folder itself that is not fetched
};

/// The rsync that fetches `source` into the folder `.dtool-partial` (staging.h) of `destination`,
/// an absolute folder of this machine; both are there. Files that have equal size and time in
/// `destination` are not sent again. A file that is cut off stays for the next time. The host can
/// write only below `destination`: files, folders, and links to paths there, but no devices, owners
/// or set-uid bits. If no byte comes for `silence`, rsync ends with kTimedOut.
ssh::LocalProgram pull_program(const Source& source, const std::string& destination, Link link,
                               std::chrono::seconds silence = std::chrono::seconds(300));
inline constexpr int kTimedOut = 30;  ///< rsync's exit code

/// What was sent.
struct Sent {
  std::size_t files = 0;
  std::uint64_t bytes = 0;  ///< the bytes of those files, uncompressed
};

/// Reads the whole output of pull_program; zeros if the output is not complete.
Sent read_sent(std::string_view out);

/// The progress of a transfer.
struct RsyncProgress {
  Sent sent;
  double fraction = 0;  ///< the share of all files to be examined, from 0 to 1
};

/// Reads the output of pull_program piece by piece.
class ProgressReader {
 public:
  /// The progress after this piece.
  RsyncProgress add(std::string_view piece);

 private:
  std::string line_;  ///< text after the last carriage return
  RsyncProgress progress_;
};

/// The line of rsync's error output that names the cause. Its last lines only say that it gave up.
std::string complaint(std::string_view err);

}  // namespace dtool::tree_sync
