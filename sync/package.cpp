#include "sync/package.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <sstream>

namespace dtool::tree_sync {
namespace {

/// Above this rsync's search for the parts that differ is worth its time, which every host and, for
/// each of them, this machine have to spend.
constexpr std::uint64_t kMostRewritten = 64'000'000;

/// $1: bytes of the archive's first members; $2: the tree's root; then the compressor. Standard
/// input: those members, then the names for tar.
constexpr std::string_view kPack =
    "set -o pipefail; { head -c \"$1\" && tar --create --file=- --directory=\"$2\" --format=posix "
    "--transform='flags=r;s,^,tree/,' "
    "--pax-option=delete=atime,delete=ctime --hard-dereference --owner=0 --group=0 "
    "--numeric-owner --null --no-unquote --no-recursion --files-from=-; } | \"${@:3}\"";

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

/// With the folders above each, whose modes go along.
std::string names_for_tar(const std::vector<Entry>& changed) {
  std::set<std::string> names;
  for (const Entry& entry : changed) {
    names.insert(entry.name);
    for (std::size_t slash = entry.name.rfind('/', entry.name.size() - 2);
         slash != std::string::npos && slash > 0; slash = entry.name.rfind('/', slash - 1)) {
      if (!names.insert(entry.name.substr(0, slash + 1)).second) break;
    }
  }
  std::string list;
  for (const std::string& name : names) add_name(list, name);
  return list;
}

}  // namespace

bool can_compress(Compression compression) {
  const std::string program = compression == Compression::zstd ? "/zstd" : "/gzip";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::optional<Package> pack(const Tree& tree, const Listing& now, const std::vector<Entry>& before,
                            Compression compression) {
  Delta delta = find_delta(before, now.entries);
  if (delta.swaps_kinds || delta.rewritten > kMostRewritten) return std::nullopt;
  Package package;
  package.compression = compression;
  package.bytes = delta.bytes;
  package.changes_names = delta.changes_names;
  package.incoming_digest = digest_of(delta.changed);
  std::string incoming;
  std::string removed;
  for (const Entry& entry : delta.changed) {
    if (entry.is_folder()) continue;
    add_name(incoming, entry.name);
    ++package.files;
  }
  for (const std::string& name : delta.removed) add_name(removed, name);
  const std::string lists =
      archive_member("incoming", incoming) + archive_member("removed", removed);
  auto stream = std::make_shared<ssh::ProgramOutput>();
  stream->arguments = {"env",
                       "LC_ALL=C",
                       "bash",
                       "-c",
                       std::string(kPack),
                       "pack",
                       std::to_string(lists.size()),
                       tree.root.native()};
  // As well as it goes without holding anybody up: it is done once, and sent many times.
  const bool is_zstd = compression == Compression::zstd;
  for (const char* word :
       is_zstd ? std::vector{"zstd", "-q", "-c", "-3", "-T0"} : std::vector{"gzip", "-c", "-3"})
    stream->arguments.emplace_back(word);
  stream->input = lists + names_for_tar(delta.changed);
  package.stream = std::move(stream);
  return package;
}

}  // namespace dtool::tree_sync
