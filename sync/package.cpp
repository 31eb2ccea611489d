#include "sync/package.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "ssh/machine/home_folder.h"
#include "ssh/machine/random_hex.h"
#include "sync/kept_listings.h"

namespace dtool::tree_sync {
namespace {

/// Above this rsync's search for the parts that differ is worth its time, which every host and, for
/// each of them, this machine have to spend.
constexpr std::uint64_t kMostRewritten = 64'000'000;

/// An archive of so many bytes is not worth a decompressor, which takes a host 2 ms of CPU; and it
/// is all that is wasted for a host of which the guess is wrong.
constexpr std::uint64_t kSmall = 32'000;
/// So much may go in vain where nothing is known to have been sent from a folder, which is once;
/// and it does not all go, since a host that does not want it ends the command.
constexpr std::uint64_t kFirst = 8'000'000;
/// Up to here zstd's window is 256 KiB and not 2 MiB: hosts are done sooner, since getting memory
/// takes time, and the archive is hardly larger.
constexpr std::uint64_t kNarrow = 8'000'000;
/// What an archive adds to each file or folder, its name and time included.
constexpr std::uint64_t kHeaders = 1536;

/// $1: bytes of the archive's first members; $2: the tree's root; then the compressor. Standard
/// input: those members, then the names for tar.
constexpr std::string_view kPack =
    "set -o pipefail; { head -c \"$1\" && tar --create --file=- --directory=\"$2\" --format=posix "
    "--transform='flags=r;s,^,tree/,' "
    "--pax-option=delete=atime,delete=ctime --hard-dereference --owner=0 --group=0 "
    "--numeric-owner --null --no-unquote --no-recursion --files-from=-; } | \"${@:3}\"";
/// Before that, on a line of its own: other users see arguments.
constexpr std::string_view kReadKey = "IFS= read -r key; ";
/// The key is random and used once, so it needs no salt, and no work to derive it.
constexpr std::string_view kSeal =
    " | openssl enc -aes-256-ctr -pbkdf2 -iter 1 -nosalt -pass fd:8 8<<< \"$key\"";
constexpr std::size_t kKey = 32;  // bytes

/// A file at the beginning of an archive: the header of POSIX's ustar, and the bytes in blocks.
std::string archive_member(std::string_view name, std::string_view bytes) {
  constexpr std::size_t kBlock = 512;
  std::string header(kBlock, '\0');
  const auto put = [&header](std::size_t at, std::string_view text) {
    header.replace(at, text.size(), text);
  };
  put(0, name);
  put(100, "0000600");                             // mode
  put(108, "0000000");                             // owner
  put(116, "0000000");                             // group
  put(124, fmt::format("{:011o}", bytes.size()));  // up to 8 GB
  put(136, "00000000000");                         // time
  put(148, "        ");                            // the checksum counts itself as blanks
  put(156, "0");                                   // a file
  put(257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char each : header) sum += static_cast<unsigned char>(each);
  put(148, fmt::format("{:06o}", sum));
  put(154, std::string_view("\0", 1));
  std::string member = header.append(bytes);
  member.resize((member.size() + kBlock - 1) / kBlock * kBlock);
  return member;
}

void add_name(std::string& list, std::string_view name) {
  list += name;
  list += '\0';
}

/// With the folders above each, whose modes go along. `changed` is sorted.
std::string names_for_tar(const std::vector<Entry>& changed) {
  std::string list;
  std::string_view predecessor;
  for (const Entry& entry : changed) {
    for_each_new_folder(entry.name, predecessor,
                        [&list](std::string_view folder) { add_name(list, folder); });
    if (!entry.is_folder()) add_name(list, entry.name);
    predecessor = entry.name;
  }
  return list;
}

std::uint64_t archived_bytes(const Delta& delta) {
  return delta.bytes + kHeaders * (delta.changed.size() + delta.removed.size());
}

/// Words of the command that compresses, as well as it goes without holding anybody up: it is done
/// once, and the result sent many times.
std::vector<std::string> compressor(Compression compression, std::uint64_t archived) {
  switch (compression) {
    case Compression::none:
      break;
    case Compression::zstd:
      return {"zstd", "-q", "-c", "-3", archived <= kNarrow ? "--zstd=wlog=18" : "--zstd=wlog=21",
              "-T0"};
    case Compression::gzip:
      return {"gzip", "-c", "-3"};
  }
  return {"cat"};
}

bool has_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

/// Where listings of trees that were sent are kept, to know what a host has that has one of them.
std::filesystem::path kept_folder() {
  return std::filesystem::path(ssh::home_folder()) / ".dtool" / "sent";
}

}  // namespace

bool can_compress(Compression compression) {
  return has_program(compressor(compression, 0).front());
}

bool can_seal() {
  return has_program("openssl");
}

std::optional<Package> pack(const Tree& tree, const Listing& now, const std::vector<Entry>& before,
                            Compression compression, Seal seal) {
  Delta delta = find_delta(before, now.entries);
  if (delta.swaps_kinds || delta.rewritten > kMostRewritten) return std::nullopt;
  Package package;
  package.archived = archived_bytes(delta);
  const bool is_small = seal == Seal::no && package.archived <= kSmall;
  package.compression = is_small ? Compression::none : compression;
  package.bytes = delta.bytes;
  package.changes_names = delta.changes_names;
  std::string incoming;
  std::string removed;
  for (const Entry& entry : delta.changed) {
    if (entry.is_folder()) continue;
    add_name(incoming, entry.name);
    ++package.files;
  }
  for (const std::string_view name : delta.removed) add_name(removed, name);
  std::string lists = archive_member("incoming", incoming) + archive_member("removed", removed);
  if (!before.empty()) lists += archive_member("facts", found_text(delta.changed));
  const bool is_sealed = seal == Seal::yes;
  auto stream = std::make_shared<ssh::ProgramOutput>();
  stream->arguments = {
      "env",
      "LC_ALL=C",
      "bash",
      "-c",
      is_sealed ? fmt::format("{}{}{}", kReadKey, kPack, kSeal) : std::string(kPack),
      "pack",
      std::to_string(lists.size()),
      tree.root.native()};
  for (std::string& word : compressor(package.compression, package.archived))
    stream->arguments.push_back(std::move(word));
  if (is_sealed) {
    package.key = ssh::random_hex(kKey);
    stream->input = package.key + '\n';
    package.sum = std::make_shared<std::optional<Sum>>();
    stream->on_whole = [sum = package.sum](std::uint64_t bytes, const std::string& sha256) {
      *sum = Sum{bytes, sha256};
    };
  }
  stream->input += lists + names_for_tar(delta.changed);
  package.stream = std::move(stream);
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
  // As most hosts will want it where it is too large for a guess.
  const auto usual = can_compress(Compression::zstd) ? Compression::zstd : Compression::gzip;
  const Package* package = get(basis.value_or(""), usual, Seal::no);
  const std::uint64_t most = basis ? kSmall : kFirst;
  return package != nullptr && package->archived <= most ? package : nullptr;
}

}  // namespace dtool::tree_sync
