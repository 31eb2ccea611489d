// How rsync is called to send a tree or to bring one back, and what its answers mean.
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

/// What lies between the two rsyncs.
enum class Link { network, local };

/// What keeps two trees that are sent to one folder at once from becoming a mixture. Of one and the
/// same tree both are sent, one after the other; of two, the one that was prepared first is
/// refused.
struct Turn {
  std::string
      lock;  ///< a file on the host, absolute, that holds the fingerprint of the newest tree
  std::string tree;  ///< the fingerprint of this one
};

/// By what rsync knows a file that need not be sent: by size and time (to the nanosecond), or by
/// what is in it, for which both sides read all files.
enum class Same { size_and_time, content };

/// The rsync that sends `tree` into `folder` of a host, which must be there. `folder` is absolute
/// or from `~/`. Permissions and times are kept, owners are not; all new files take their places
/// together at the end.
ssh::LocalProgram push_program(const Tree& tree, std::string_view folder, Link link,
                               const Turn& turn, Same same);

/// The rsync that compares the files of `folder` that the host's file `names` names, each ended by
/// a NUL, with those of `tree`, and changes nothing. Differences has what it prints.
ssh::LocalProgram compare_program(const Tree& tree, std::string_view folder, Link link,
                                  std::string_view names);

/// Reads the output of compare_program as it comes, in pieces cut anywhere.
class Differences {
 public:
  void add(std::string_view piece);

  std::size_t count() const { return count_; }
  /// The first few files that differ, as rsync prints their names.
  const std::vector<std::string>& first() const { return first_; }

 private:
  std::string line_;  ///< that has not ended yet
  std::size_t count_ = 0;
  std::vector<std::string> first_;
};

/// What a host has that is to be brought here.
struct Source {
  std::string folder;                  ///< on the host: absolute, or from `~/`
  std::string file = {};               ///< its name in the folder; empty: all of the folder
  std::vector<std::string> only = {};  ///< patterns of rsync's filters; none: everything
};

/// The rsync that brings `source` into `destination`, an absolute folder of this machine that is
/// there. Files of the same size and time are not sent again, none here is deleted. A file takes
/// its place when it is whole; one that was broken off waits in a folder `.dtool-partial` beside
/// it for the next time. What a host can send are files, folders, and links to what lies in
/// `destination`: no devices, owners or set-uid bits, and nothing outside.
/// Where nothing comes for `silence`, it gives up with kTimedOut.
ssh::LocalProgram pull_program(const Source& source, const std::string& destination, Link link,
                               std::chrono::seconds silence = std::chrono::seconds(300));
inline constexpr int kTimedOut = 30;  ///< rsync's exit code

/// What rsync sent.
struct Sent {
  std::size_t files = 0;
  std::uint64_t bytes = 0;  ///< of those files, uncompressed
};

/// Reads what push_program printed to its end; zeros where it did not come so far.
Sent read_sent(std::string_view out);

/// The same in the middle of a transfer, and how far it is.
struct Progress {
  Sent sent;
  double fraction = 0;  ///< of all that is to be looked at, from 0 to 1
};

/// Reads the output of push_program or pull_program as it comes, in pieces cut anywhere.
class ProgressReader {
 public:
  /// What is known so far, also by earlier pieces.
  Progress add(std::string_view piece);

 private:
  std::string line_;  ///< what came after the last carriage return
  Progress progress_;
};

/// The line of rsync's complaints that names the cause; its last lines only say that it gave up.
std::string complaint(std::string_view err);

/// Gives the result of a push_program that failed its sentence, rsync's own words, and a hint.
void explain(ssh::HostResult& result);

}  // namespace dtool::tree_sync
