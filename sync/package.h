// A tree, or what leads to it from an earlier one, packed once for all hosts that lack the same.
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

/// Whether a package is encrypted, for what others pass on.
enum class Seal { no, yes };

/// By what a host that has a package from another knows that it is this one.
struct Sum {
  std::uint64_t bytes = 0;
  std::string sha256;  ///< hex
};

/// What is sent: the names of the files that the tree no longer has, then folders, files and links
/// (host::PackageEntry); sealed where it is to be.
struct Package {
  std::shared_ptr<const ssh::SharedBytes> content;
  std::string basis = {};  ///< the fingerprint of the tree from which it leads; empty: of none
  Compression compression = Compression::zstd;
  std::size_t files = 0;                         ///< that come
  std::uint64_t bytes = 0;                       ///< of them, uncompressed
  std::uint64_t expected = 0;                    ///< about so large is it before it is compressed
  std::string key = {};                          ///< of a sealed one; else empty
  std::shared_ptr<std::optional<Sum>> sum = {};  ///< of a sealed one: known once it was made
};

/// The package that leads to `now` from the tree of `before`; from an empty folder where that has
/// no entries. Nothing if rsync does it better: where a file and a folder changed places, and
/// where large files were rewritten, of which rsync sends only the parts that differ.
std::optional<Package> pack(const Tree& tree, const Listing& now, const std::vector<Entry>& before,
                            Compression compression = Compression::zstd, Seal seal = Seal::no);

/// The packages of one push, each made when the first host wants it.
class Packages {
 public:
  /// Both must outlive it.
  Packages(const Tree& tree, const Listing& now) : tree_(tree), now_(now) {}

  /// Notes how the tree looks, which is the basis of later packages. Where that cannot be, the next
  /// push is slower, and no worse: a home that is full or cannot be written is for others to
  /// complain of.
  void keep_basis() const;

  /// What a host lacks whose tree has that fingerprint (empty: it has nothing); stays where it is.
  /// Null if this launcher does not know that tree, or rsync does it better.
  const Package* get(const std::string& basis, Compression compression, Seal seal);
  /// What leads from the tree that was sent last from this folder, or from nothing if none was,
  /// for hosts that were not asked yet: where they have just that, they need not be. Null if
  /// it is the tree that is sent now, and where to send so much in vain would be a waste.
  const Package* guess();
  void clear() { packages_.clear(); }
  /// Whether a file was edited since the tree of that fingerprint and kept its size and time, as
  /// far as this launcher knows that tree: rsync would miss it.
  bool hides_edits(const std::string& basis) const;

 private:
  const Tree& tree_;
  const Listing& now_;
  std::map<std::tuple<std::string, Compression, Seal>, std::optional<Package>> packages_;
};

}  // namespace dtool::tree_sync
