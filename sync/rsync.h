// How rsync is called to send a tree, and what its answers mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ssh/remote.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// What lies between the two rsyncs.
enum class Link { network, local };

/// The rsync that sends `tree` into `folder` of a host, which must be there. `folder` is absolute
/// or from `~/`. Files of the same size and time (to the nanosecond) are not sent; permissions and
/// times are kept, owners are not; all new files take their places together at the end.
ssh::LocalProgram push_program(const Tree& tree, std::string_view folder, Link link);

/// What rsync sent.
struct Sent {
  std::size_t files = 0;
  std::uint64_t bytes = 0;  ///< of those files, uncompressed
};

/// Reads what push_program printed to its end; zeros where it did not come so far.
Sent read_sent(std::string_view out);

/// The same, in the middle: reads push_program's output as it comes, in pieces cut anywhere.
class SentSoFar {
 public:
  /// The bytes sent so far, also by earlier pieces.
  std::uint64_t add(std::string_view piece);

 private:
  std::string line_;  ///< what came after the last carriage return
  std::uint64_t bytes_ = 0;
};

/// Gives the result of a push_program that failed its sentence, rsync's own words, and a hint.
void explain(ssh::HostResult& result);

}  // namespace dtool::tree_sync
