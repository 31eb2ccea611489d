// SPDX-License-Identifier: MIT
// A tree, or the changes from an earlier tree, packed once for all hosts that lack the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ssh/remote.h"
#include "sync/listing.h"
#include "sync/package_writer.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// Whether a package is encrypted, for hosts to pass on.
enum class Seal { no, yes };

/// With this a host checks a package that it got from another host.
struct Sum {
  std::uint64_t bytes = 0;
  std::string sha256;  ///< hex
};

/// A package: the names of the files that the tree no longer has, then folders, files and links
/// (host::PackageEntry); sealed if it has a key.
struct Package {
  std::shared_ptr<const ssh::SharedBytes> content;
  std::string basis = {};  ///< the fingerprint of the tree that it builds on; empty: none
  Compression compression = Compression::zstd;
  std::size_t files = 0;                         ///< in the package
  std::uint64_t bytes = 0;                       ///< of them, uncompressed
  std::uint64_t expected = 0;                    ///< estimated size before compression
  std::string key = {};                          ///< of a sealed package; else empty
  std::shared_ptr<std::optional<Sum>> sum = {};  ///< of a sealed package; set once the package was
                                                 ///< made
};

/// The package that turns the tree of `before` into `now`; without entries in `before` it starts
/// from an empty folder. Nothing if rsync does better: if a file and a folder changed places, or if
/// large files were rewritten, because rsync sends only the parts that differ.
std::optional<Package> pack(const Tree& tree, const Listing& now, const std::vector<Entry>& before,
                            Compression compression = Compression::zstd, Seal seal = Seal::no);

/// The packages of one push. Each is made when the first host needs it.
class Packages {
 public:
  /// Both must outlive it.
  Packages(const Tree& tree, const Listing& now) : tree_(tree), now_(now) {}

  /// Keeps the listing of the tree as the basis of later packages. If that fails, the next push is
  /// slower but still correct, so a full or read-only home is not reported here.
  void keep_basis() const;

  /// The package for a host whose tree has that fingerprint (empty: the host has nothing). The
  /// pointer stays valid. Null if this launcher does not know that tree, or if rsync does better.
  const Package* get(const std::string& basis, Compression compression, Seal seal);
  /// A package for hosts that were not asked yet. It builds on the tree that was last sent from
  /// this folder, or on nothing if none was sent. A host that has this basis needs no question.
  /// Null if that tree equals the current one, or if the package is too large to send on a guess.
  const Package* guess();
  void clear() { packages_.clear(); }
  /// Whether a file was edited since the tree of that fingerprint but kept its size and time: rsync
  /// would miss it. False if this launcher does not know that tree.
  bool hides_edits(const std::string& basis) const;

 private:
  const Tree& tree_;
  const Listing& now_;
  std::map<std::tuple<std::string, Compression, Seal>, std::optional<Package>> packages_;
};

}  // namespace dtool::tree_sync
