#include "sync/package.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "ssh/client_config.h"

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

std::string random_hex(std::size_t bytes) {
  std::string text;
  while (text.size() < 2 * bytes) {
    std::array<unsigned char, 32> some{};  // the kernel gives so few in one piece
    if (::getrandom(some.data(), some.size(), 0) < 0)
      throw std::system_error(errno, std::generic_category(), "getrandom");
    for (const unsigned char byte : some) text += fmt::format("{:02x}", byte);
  }
  text.resize(2 * bytes);
  return text;
}

bool can_compress(Compression compression) {
  return has_program(compression == Compression::zstd ? "zstd" : "gzip");
}

bool can_seal() {
  return has_program("openssl");
}

std::optional<Package> pack(const Tree& tree, const Listing& now, const std::vector<Entry>& before,
                            Compression compression, Seal seal) {
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
  // As well as it goes without holding anybody up: it is done once, and sent many times.
  const bool is_zstd = compression == Compression::zstd;
  for (const char* word :
       is_zstd ? std::vector{"zstd", "-q", "-c", "-3", "-T0"} : std::vector{"gzip", "-c", "-3"})
    stream->arguments.emplace_back(word);
  if (is_sealed) {
    package.key = random_hex(kKey);
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
    keep_listing(now_, kept_folder());
  } catch (const std::filesystem::filesystem_error&) {
  }
}

const Package* Packages::get(const std::string& basis, Compression compression, Seal seal) {
  const auto [found, is_new] = packages_.try_emplace({basis, compression, seal});
  if (is_new) {
    std::optional<std::vector<Entry>> before{std::in_place};
    if (!basis.empty()) before = kept_listing(basis, kept_folder());
    if (before) found->second = pack(tree_, now_, *before, compression, seal);
  }
  return found->second ? &*found->second : nullptr;
}

}  // namespace dtool::tree_sync
