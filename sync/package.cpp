// SPDX-License-Identifier: MIT
#include "sync/package.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "ssh/host/frames.h"
#include "ssh/host/messages/tree.h"
#include "ssh/machine/home_folder.h"
#include "ssh/machine/owned_fd.h"
#include "ssh/machine/random_hex.h"
#include "sync/kept_listings.h"
#include "sync/open_folder.h"

namespace dtool::tree_sync {
namespace {

/// Above this rsync's search for the parts that differ is worth its time, which every host and, for
/// each of them, this machine have to spend.
constexpr std::uint64_t kMostRewritten = 64'000'000;

/// So much goes along with a question, and is all that is wasted for a host of which the guess is
/// wrong.
constexpr std::uint64_t kSmall = 32'000;
/// The largest guess for a folder from which nothing is known to have been sent; that happens once.
/// Not all of it is wasted, since a host that does not need it ends the command.
constexpr std::uint64_t kFirst = 8'000'000;
/// What a package adds to each file or folder, with its name and time.
constexpr std::uint64_t kHeaders = 256;
constexpr std::size_t kKey = 32;  // bytes

host::PackageEntry described(const Entry& entry) {
  host::PackageEntry described;
  described.name = entry.name;
  const char* at = entry.facts.data();
  const char* const end = at + entry.facts.size();
  const auto read = [&at, end](auto& number, int base) {
    at = std::from_chars(at, end, number, base).ptr;
    if (at != end) ++at;
  };
  if (!entry.is_folder()) {
    read(described.size, 10);
    read(described.seconds, 10);
    read(described.nanoseconds, 10);
    described.nanoseconds /= 10;  // find's fractions have a digit more
  }
  read(described.mode, 8);
  described.target.assign(at, end);
  return described;
}

/// An entry, and for a file how it was when the tree was read.
struct Packed {
  host::PackageEntry entry;
  Look look = {};
};

/// The changed entries, with the folders above each, whose modes are sent along.
std::vector<Packed> entries_for(const std::vector<Entry>& changed, const Listing& now,
                                const Tree& tree) {
  std::vector<Packed> entries;
  std::string_view predecessor;
  for (const Entry& entry : changed) {
    for_each_new_folder(entry.name, predecessor, [&](std::string_view folder) {
      entries.push_back(
          {described(*std::ranges::lower_bound(now.entries, folder, {}, &Entry::name))});
    });
    predecessor = entry.name;
    if (entry.is_folder()) continue;
    const auto file = std::ranges::lower_bound(tree.files, entry.name, std::ranges::less());
    const auto place = static_cast<std::size_t>(file - tree.files.begin());
    entries.push_back({described(entry), place < tree.looks.size() ? tree.looks[place] : Look{}});
  }
  return entries;
}

/// Throws std::runtime_error if the file is not as it was when the tree was read.
void add_file(PackageWriter& package, const Packed& packed, const OpenFolder& root) {
  constexpr std::size_t kPiece = 1 << 18U;
  host::PackageEntry entry = packed.entry;
  const auto changed = [&entry] {
    return std::runtime_error(fmt::format("{} changed while it was being sent", entry.name));
  };
  const ssh::OwnedFd file = root.open_file(entry.name);
  if (!is_as_seen(file.get(), packed.look) || packed.look.size != entry.size) throw changed();
  std::uint64_t left = entry.size;
  std::string piece;
  for (bool is_first = true; is_first || left > 0; is_first = false) {
    piece.resize(std::min<std::uint64_t>(left, kPiece));
    std::size_t filled = 0;
    while (filled < piece.size()) {
      const ssize_t count = ::read(file.get(), piece.data() + filled, piece.size() - filled);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) throw changed();
      filled += static_cast<std::size_t>(count);
    }
    left -= piece.size();
    if (is_first) {
      entry.content.text = piece;
      package.add(host::to_frame(entry));
    } else {
      package.add(host::to_frame(host::Kind::package_bytes, piece));
    }
  }
  if (!is_as_seen(file.get(), packed.look)) throw changed();
}

/// Where listings of trees that were sent are kept, to know what a host has that has one of them.
std::filesystem::path kept_folder() {
  return std::filesystem::path(ssh::home_folder()) / ".dtool" / "sent";
}

}  // namespace

std::optional<Package> pack(const Tree& tree, const Listing& now, const std::vector<Entry>& before,
                            Compression compression, Seal seal) {
  Delta delta = find_delta(before, now.entries);
  if (delta.swaps_kinds || delta.rewritten > kMostRewritten) return std::nullopt;
  Package package;
  package.expected = delta.bytes + kHeaders * (delta.changed.size() + delta.removed.size());
  package.compression = compression;
  package.bytes = delta.bytes;
  package.files = static_cast<std::size_t>(
      std::ranges::count_if(delta.changed, [](const Entry& each) { return !each.is_folder(); }));
  ssh::SharedBytes content;
  if (seal == Seal::yes) {
    package.key = ssh::random_hex(kKey);
    package.sum = std::make_shared<std::optional<Sum>>();
    content.on_whole = [sum = package.sum](std::uint64_t bytes, const std::string& sha256) {
      *sum = Sum{bytes, sha256};
    };
  }
  content.make = [root = tree.root, compression, key = package.key, expected = package.expected,
                  entries = entries_for(delta.changed, now, tree),
                  removed = std::vector<std::string>(delta.removed.begin(), delta.removed.end())](
                     const ssh::SharedBytes::Write& write) {
    PackageWriter writer(write, compression, key, expected);
    const OpenFolder folder(root);
    add_names(writer, removed);
    for (const Packed& each : entries) {
      const bool is_file = each.entry.target.empty() && !each.entry.name.ends_with('/');
      if (is_file) {
        add_file(writer, each, folder);
      } else {
        writer.add(host::to_frame(each.entry));
      }
    }
    writer.finish();
  };
  package.content = std::make_shared<const ssh::SharedBytes>(std::move(content));
  return package;
}

void Packages::keep_basis() const {
  try {
    keep_listing(now_, tree_.root, kept_folder());
  } catch (const std::filesystem::filesystem_error&) {
  }
}

const Package* Packages::get(const std::string& basis, Compression compression, Seal seal) {
  const auto [found, is_new] = packages_.try_emplace({basis, compression, seal});
  if (is_new) {
    const auto before = basis.empty() ? Listing{} : kept_listing(basis, kept_folder());
    if (before) found->second = pack(tree_, now_, before->entries, compression, seal);
    if (found->second) found->second->basis = basis;
  }
  return found->second ? &*found->second : nullptr;
}

bool Packages::hides_edits(const std::string& basis) const {
  const auto before = kept_listing(basis, kept_folder());
  return before && find_delta(before->entries, now_.entries).hides_edits;
}

const Package* Packages::guess() {
  const auto basis = last_kept(tree_.root, kept_folder());
  if (basis == now_.fingerprint) return nullptr;
  const Package* package = get(basis.value_or(""), Compression::zstd, Seal::no);
  const std::uint64_t most = basis ? kSmall : kFirst;
  return package != nullptr && package->expected <= most ? package : nullptr;
}

}  // namespace dtool::tree_sync
