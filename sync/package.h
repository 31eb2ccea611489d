// A tree, or what leads to it from an earlier one, packed once for all hosts that lack the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/remote.h"
#include "sync/listing.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// How a package is compressed: what both this machine and the host have.
enum class Compression { zstd, gzip };

/// What is sent: an archive of tar's, compressed. It has two lists of names, each ended by NULs:
/// `incoming`, of the files that come, and `removed`, of those that the tree no longer has; then
/// the files, in `tree/`.
struct Package {
  std::shared_ptr<const ssh::ProgramOutput> stream;
  Compression compression = Compression::zstd;
  bool changes_names = false;   ///< Delta's
  std::string incoming_digest;  ///< digest_of what comes
  std::size_t files = 0;        ///< that come
  std::uint64_t bytes = 0;      ///< of them, uncompressed
};

/// The package that leads to `now` from the tree of `before`; from an empty folder where that has
/// no entries. Nothing where rsync does it better: where a file and a folder changed places, and
/// where large files were rewritten, of which rsync sends only the parts that differ.
std::optional<Package> pack(const Tree& tree, const Listing& now, const std::vector<Entry>& before,
                            Compression compression);

/// Whether this machine can compress so.
bool can_compress(Compression compression);

}  // namespace dtool::tree_sync
