// SPDX-License-Identifier: MIT
#include "sync/copy/parcels.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <utility>

#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"
#include "ssh/wire/copy.h"
#include "ssh/wire/protocol.h"

namespace dtool::tree_sync {
namespace {

/// Small files are many: each takes a frame for itself and one for its checksum.
constexpr std::size_t kMostRanges = 20'000;
constexpr std::size_t kPiece = 1 << 18U;  // bytes
constexpr std::size_t kKey = 32;          // bytes
constexpr std::uint64_t kHeaders = 256;   // bytes of a range beside its content

std::runtime_error changed(const Origin& origin) {
  return std::runtime_error(
      fmt::format("{} changed while it was being sent", origin.path().native()));
}

/// One file of the list while it is read.
class ListedFile {
 public:
  ListedFile(const CopyList& list, std::size_t entry)
      : origin_(list.origins[entry]), fd_(origin_.folder->open_file(origin_.name)) {
    require_as_listed();
  }

  /// Throws std::runtime_error.
  void require_as_listed() const {
    if (!is_as_seen(fd_.get(), origin_.look)) throw changed(origin_);
  }

  template <typename Take>
  void read(std::uint64_t offset, std::uint64_t bytes, Take take) const {
    std::string piece;
    for (std::uint64_t at = offset; at < offset + bytes; at += piece.size()) {
      piece.resize(std::min<std::uint64_t>(offset + bytes - at, kPiece));
      const ssize_t count = ::pread(fd_.get(), piece.data(), piece.size(), static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) {
        piece.clear();
        continue;
      }
      if (count <= 0) throw changed(origin_);
      piece.resize(static_cast<std::size_t>(count));
      take(at, piece);
    }
    require_as_listed();
  }

 private:
  const Origin& origin_;
  ssh::OwnedFd fd_;
};

/// A set of hosts, as one bit each.
using HostBits = std::vector<bool>;

/// The ranges that exactly those hosts lack.
using RangesByHosts = std::map<HostBits, std::vector<Range>>;

std::size_t count_of(const HostBits& hosts) {
  return static_cast<std::size_t>(std::ranges::count(hosts, true));
}

RangesByHosts ranges_by_hosts(const CopyList& list, const std::vector<Lacking>& hosts) {
  RangesByHosts ranges;
  std::vector<std::size_t> next(hosts.size());  // place in each host's entries
  std::vector<std::pair<std::uint64_t, std::size_t>> begins;
  for (std::size_t entry = 0; entry < list.entries.size(); ++entry) {
    begins.clear();
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const auto& lacking = hosts[i].entries;
      if (next[i] == lacking.size() || lacking[next[i]].first != entry) continue;
      begins.emplace_back(std::min(lacking[next[i]++].second, list.entries[entry].size), i);
    }
    std::ranges::sort(begins);
    HostBits lack(hosts.size());
    for (std::size_t i = 0; i < begins.size(); ++i) {
      lack[begins[i].second] = true;
      const std::uint64_t from = begins[i].first;
      const bool is_last = i + 1 == begins.size();
      const std::uint64_t to = is_last ? list.entries[entry].size : begins[i + 1].first;
      if (is_last || to > from) ranges[lack].push_back({entry, from, to - from});
    }
  }
  return ranges;
}

void cut(std::vector<Parcel>& parcels, const std::vector<Range>& ranges,
         const std::vector<std::size_t>& hosts, ParcelSizes sizes) {
  Parcel parcel{{}, hosts, 0};
  bool is_first = hosts.size() > 1;
  const auto most = [&] { return is_first ? sizes.first : sizes.most; };
  const auto end = [&] {
    if (!parcel.ranges.empty()) parcels.push_back(std::exchange(parcel, {{}, hosts, 0}));
  };
  for (Range left : ranges) {
    do {
      if (parcel.bytes >= most() || parcel.ranges.size() >= kMostRanges) {
        end();
        is_first = false;
      }
      Range range = left;
      range.bytes = std::min(left.bytes, most() - parcel.bytes);
      parcel.ranges.push_back(range);
      parcel.bytes += range.bytes;
      left.offset += range.bytes;
      left.bytes -= range.bytes;
    } while (left.bytes > 0);
  }
  end();
}

}  // namespace

ParcelSizes parcel_sizes(std::size_t hosts, std::uint64_t bytes) {
  constexpr std::uint64_t kParts = 8;
  constexpr std::uint64_t kLeast = 4'000'000;
  constexpr std::uint64_t kFirst = 250'000;
  constexpr std::uint64_t kOne = 16'000'000;  // is one parcel behind the first
  if (hosts < kRelay || bytes * hosts < kLeastRelayed) return {};
  return {bytes < kOne ? kOne : std::clamp(bytes / kParts, kLeast, kParcel), kFirst};
}

/// The hosts that lack a file's beginning lack its rest, too, so sets of few hosts come first.
std::vector<Parcel> cut_parcels(const CopyList& list, const std::vector<Lacking>& hosts,
                                ParcelSizes sizes) {
  const RangesByHosts ranges = ranges_by_hosts(list, hosts);
  std::vector<const RangesByHosts::value_type*> sets;
  for (const auto& each : ranges) sets.push_back(&each);
  std::ranges::stable_sort(sets, {}, [](const auto* each) { return count_of(each->first); });
  std::vector<Parcel> parcels;
  for (const auto* each : sets) {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < hosts.size(); ++i)
      if (each->first[i]) members.push_back(hosts[i].host);
    std::ranges::sort(members);
    cut(parcels, each->second, members, sizes);
  }
  return parcels;
}

void RunningSums::add(std::size_t entry, std::uint64_t offset, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (offset != 0 && !running_.contains(entry)) return;
  Running& running = running_[entry];
  if (running.at != offset) return;
  running.sha.add(bytes);
  running.at += bytes.size();
}

std::string RunningSums::finish(std::size_t entry, const CopyList& list) {
  Running unread;
  std::unique_lock lock(mutex_);
  auto found = running_.extract(entry);
  const auto before = known_.find(entry);
  if (found.empty() && before != known_.end()) return finished_[entry] = before->second;
  lock.unlock();
  Running& running = found.empty() ? unread : found.mapped();
  const ListedFile file(list, entry);
  file.read(running.at, list.entries[entry].size - running.at,
            [&](std::uint64_t, std::string_view bytes) { running.sha.add(bytes); });
  std::string sum = running.sha.hex();
  lock.lock();
  finished_[entry] = known_[entry] = sum;
  return sum;
}

std::map<std::size_t, std::string> RunningSums::take_finished() {
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

Package pack_parcel(const CopyList& list, const Parcel& parcel, RunningSums& sums,
                    Compression compression, Seal seal, const std::vector<std::string>& names) {
  Package package;
  package.compression = compression;
  package.bytes = parcel.bytes;
  package.expected = parcel.bytes + kHeaders * (parcel.ranges.size() + names.size());
  package.files = parcel.ranges.size();
  ssh::SharedBytes content;
  if (seal == Seal::yes) {
    package.key = ssh::random_hex(kKey);
    package.sum = std::make_shared<std::optional<Sum>>();
    content.on_whole = [sum = package.sum](std::uint64_t bytes, const std::string& sha256) {
      *sum = Sum{bytes, sha256};
    };
  }
  content.make = [&list, &sums, parcel, compression, names, key = package.key,
                  expected = package.expected](const ssh::SharedBytes::Write& write) {
    PackageWriter writer(write, compression, key, expected);
    add_names(writer, names);
    for (const Range& range : parcel.ranges) {
      const host::CopyEntry& entry = list.entries[range.entry];
      host::CopyPiece piece{entry, range.offset, range.bytes};
      piece.entry.sha256.clear();
      writer.add(host::to_frame(piece));
      if (entry.name.ends_with('/') || !entry.target.empty()) continue;
      if (range.bytes > 0) {
        const ListedFile file(list, range.entry);
        file.read(range.offset, range.bytes, [&](std::uint64_t at, std::string_view bytes) {
          sums.add(range.entry, at, bytes);
          writer.add(host::to_frame(host::Kind::package_bytes, bytes));
        });
      }
      if (range.offset + range.bytes != entry.size) continue;
      const std::string sum = sums.finish(range.entry, list);
      // A file may have other content than it had, and size and time as before.
      if (!sum.starts_with(entry.sha256)) throw changed(list.origins[range.entry]);
      writer.add(host::to_frame(host::CopySum{sum}));
    }
    writer.finish();
  };
  package.content = std::make_shared<const ssh::SharedBytes>(std::move(content));
  return package;
}

std::string sum_of_file(const CopyList& list, std::size_t entry) {
  return RunningSums().finish(entry, list);
}

}  // namespace dtool::tree_sync
