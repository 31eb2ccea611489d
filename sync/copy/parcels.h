// SPDX-License-Identifier: MIT
// What hosts lack of a copy, cut into parcels: each is made and taken as a whole, so its size
// bounds the memory and disk that it needs aside. A file that is larger comes in several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ssh/machine/encodings.h"
#include "sync/copy/copy_list.h"
#include "sync/package_writer.h"
#include "sync/relaying.h"

namespace dtool::tree_sync {

/// The largest parcel, in bytes of files.
inline constexpr std::uint64_t kParcel = std::uint64_t{64} << 20U;

/// How large parcels are at most, in bytes of files.
struct ParcelSizes {
  std::uint64_t most = kParcel;
  std::uint64_t first = kParcel;  ///< the first of those that many hosts take: it shows which hosts
                                  ///< are slow
};

/// For the parcels of so many hosts that lack so many bytes: while the last one is unpacked, and
/// while the first one comes from host to host, links have nothing to do.
ParcelSizes parcel_sizes(std::size_t hosts, std::uint64_t bytes);

/// Part of one file, or a whole link or folder.
struct Range {
  std::size_t entry = 0;  ///< its place in the list
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  bool operator==(const Range&) const = default;
};

struct Parcel {
  std::vector<Range> ranges;
  std::vector<std::size_t> hosts;  ///< the hosts that lack all of it; sorted
  std::uint64_t bytes = 0;

  bool operator==(const Parcel&) const = default;
};

/// What one host lacks: entries by their places, and how much of each it has. Sorted.
struct Lacking {
  std::size_t host = 0;
  std::vector<std::pair<std::size_t, std::uint64_t>> entries;
};

/// Parcels in an order in which each host can take its own: the beginning of a file comes before
/// the rest. No host is sent what it has.
std::vector<Parcel> cut_parcels(const CopyList& list, const std::vector<Lacking>& hosts,
                                ParcelSizes sizes = {});

/// The SHA-256 of files that are read range by range, so that each byte is read once as a rule.
class RunningSums {
 public:
  /// Takes a range's next bytes; what does not follow on is left for finish().
  void add(std::size_t entry, std::uint64_t offset, std::string_view bytes);
  /// The checksum of the whole file, in hex. Reads what was not added. Throws std::runtime_error if
  /// it cannot be read.
  std::string finish(std::size_t entry, const CopyList& list);
  /// The checksums that were finished since the last call, by entry.
  std::map<std::size_t, std::string> take_finished();

 private:
  struct Running {
    ssh::Sha256 sha;
    std::uint64_t at = 0;
  };
  std::mutex mutex_;  ///< parcels are made on threads of their own
  std::map<std::size_t, Running> running_;
  std::map<std::size_t, std::string> finished_;
  std::map<std::size_t, std::string>
      known_;  ///< the sums for a file's end that is sent to another host later
};

/// The package for a parcel, which begins with `names` if there are any. It fails with the name of
/// a file that is not as it was listed. `list` and `sums` must outlive it.
Package pack_parcel(const CopyList& list, const Parcel& parcel, RunningSums& sums,
                    Compression compression, Seal seal, const std::vector<std::string>& names = {});

/// The SHA-256 of a file, in hex. Throws std::runtime_error if it cannot be read or is not as it
/// was listed.
std::string sum_of_file(const CopyList& list, std::size_t entry);

}  // namespace dtool::tree_sync
