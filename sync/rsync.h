// SPDX-License-Identifier: MIT
// The command lines of rsync that send a tree, compare it and fetch files, and the readers of
// rsync's output.
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

/// Prevents two pushes into one folder from mixing their trees. Two pushes of the same tree run one
/// after the other. Of two different trees, the one that was prepared first is refused.
struct FolderLock {
  std::string file;  ///< on the host, absolute; it holds the fingerprint of the newest tree
  std::string tree;  ///< the fingerprint of this one
};

/// How rsync recognises a file that it need not send: by its size and time (to the nanosecond), or
/// by its content. To compare contents, both sides read all files.
enum class Same { size_and_time, content };

/// The rsync that sends `tree` into `folder` of a host. The folder must exist; it is absolute or
/// from `~/`. Permissions and times are kept, owners are not. All new files move to their places
/// together at the end.
ssh::LocalProgram push_program(const Tree& tree, std::string_view folder, Link link,
                               const FolderLock& lock, Same same);

/// The rsync that compares the tree with the files of `folder` that are listed in the host's file
/// `names` (each name ends with a NUL). It changes nothing. Differences reads its output.
ssh::LocalProgram compare_program(const Tree& tree, std::string_view folder, Link link,
                                  std::string_view names);

/// Reads the output of compare_program piece by piece.
class Differences {
 public:
  void add(std::string_view piece);
  /// Further files: so many, and the first few names.
  void add(const std::vector<std::string>& first, std::int64_t count);

  std::size_t count() const { return count_; }
  /// The first few files that differ, as rsync prints their names.
  const std::vector<std::string>& first() const { return first_; }

 private:
  std::string line_;  ///< the last line, as far as it has come
  std::size_t count_ = 0;
  std::vector<std::string> first_;
};

/// Files of a host that are to be fetched.
struct Source {
  std::string folder;                   ///< on the host: absolute, or from `~/`
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

/// What rsync sent.
struct Sent {
  std::size_t files = 0;
  std::uint64_t bytes = 0;  ///< of those files, uncompressed
};

/// Reads the whole output of push_program; zeros if the output is not complete.
Sent read_sent(std::string_view out);

/// The progress of a transfer.
struct RsyncProgress {
  Sent sent;
  double fraction = 0;  ///< of all files to be examined, from 0 to 1
};

/// Reads the output of push_program or pull_program piece by piece.
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

/// Gives the result of a failed push_program its sentence, with rsync's own message and a hint.
void explain(ssh::HostResult& result);

}  // namespace dtool::tree_sync
