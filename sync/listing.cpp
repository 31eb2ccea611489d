#include "sync/listing.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <system_error>

#include "ssh/sha256.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostKept = 8;

/// As the hosts' programs write them: ended by a NUL.
void add_with_end(ssh::Sha256& sha, const std::string& text) {
  sha.add({text.c_str(), text.size() + 1});
}

std::string fingerprint_of(const std::vector<Entry>& entries) {
  ssh::Sha256 sha;
  for (const Entry& entry : entries) {
    add_with_end(sha, entry.name);
    add_with_end(sha, entry.facts);
  }
  return sha.hex();
}

/// As `find` prints them: its fractions have ten digits.
Entry list_file(const fs::path& root, const std::string& name) {
  const fs::path path = root / name;
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {name, "gone"};
  std::error_code error;
  std::string target;
  if (S_ISLNK(status.st_mode)) target = fs::read_symlink(path, error).native();
  return {name, fmt::format("{} {}.{:09}0 {:o} {}", status.st_size, status.st_mtim.tv_sec,
                            status.st_mtim.tv_nsec, status.st_mode & 07777U, target)};
}

Entry list_folder(const fs::path& root, const std::string& name) {
  struct stat status {};
  if (::lstat((root / name).c_str(), &status) != 0) return {name, "gone"};
  return {name, fmt::format("{:o}", status.st_mode & 07777U)};
}

}  // namespace

std::uint64_t Entry::size() const {
  std::uint64_t size = 0;
  if (!is_folder()) std::from_chars(facts.data(), facts.data() + facts.size(), size);
  return size;
}

Listing list_tree(const Tree& tree) {
  Listing listing;
  std::set<std::string> folders;
  for (const std::string& file : tree.files) {
    listing.entries.push_back(list_file(tree.root, file));
    for (std::size_t slash = file.rfind('/'); slash != file.npos && slash > 0;
         slash = file.rfind('/', slash - 1)) {
      if (!folders.insert(file.substr(0, slash + 1)).second) break;
    }
  }
  for (const std::string& folder : folders)
    listing.entries.push_back(list_folder(tree.root, folder));
  std::ranges::sort(listing.entries, {}, &Entry::name);
  listing.fingerprint = fingerprint_of(listing.entries);
  listing.digest = digest_of(listing.entries);
  return listing;
}

std::string digest_of(const std::vector<Entry>& entries) {
  ssh::Sha256 sha;
  for (const Entry& entry : entries) {
    if (entry.is_folder()) continue;
    sha.add("./");
    add_with_end(sha, entry.name);
    add_with_end(sha, entry.facts);
  }
  return sha.hex();
}

Delta find_delta(const std::vector<Entry>& before, const std::vector<Entry>& now) {
  Delta delta;
  std::vector<Entry> gone;
  std::vector<Entry> added;
  std::ranges::set_difference(before, now, std::back_inserter(gone), {}, &Entry::name,
                              &Entry::name);
  std::ranges::set_difference(now, before, std::back_inserter(added), {}, &Entry::name,
                              &Entry::name);
  std::set<std::string> folders;
  for (const auto* entries : {&gone, &added}) {
    for (const Entry& entry : *entries) {
      if (entry.is_folder()) {
        folders.insert(entry.name);
      } else {
        delta.changes_names = true;
      }
    }
  }
  for (const auto* entries : {&gone, &added}) {
    for (const Entry& entry : *entries) {
      if (!entry.is_folder() && folders.contains(entry.name + "/")) delta.swaps_kinds = true;
    }
  }
  for (const Entry& entry : gone) {
    if (!entry.is_folder()) delta.removed.push_back(entry.name);
  }
  auto old = before.begin();
  for (const Entry& entry : now) {
    old =
        std::find_if(old, before.end(), [&](const Entry& each) { return each.name >= entry.name; });
    const bool is_known = old != before.end() && old->name == entry.name;
    if (is_known && old->facts == entry.facts) continue;
    delta.changed.push_back(entry);
    delta.bytes += entry.size();
    if (is_known) delta.rewritten += entry.size();
  }
  return delta;
}

void keep_listing(const Listing& listing, const fs::path& folder) {
  // Names are for nobody else's eyes.
  ::mkdir(folder.parent_path().c_str(), 0700);
  ::mkdir(folder.c_str(), 0700);
  fs::permissions(folder, fs::perms::owner_all);  // throws where it could not be made
  const fs::path path = folder / listing.fingerprint;
  const fs::path unfinished = folder / fmt::format("new.{}", ::getpid());
  std::ofstream file(unfinished, std::ios::binary);
  for (const Entry& entry : listing.entries) file << entry.name << '\0' << entry.facts << '\0';
  file.close();
  if (!file) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    throw fs::filesystem_error("cannot write", unfinished,
                               std::make_error_code(std::errc::io_error));
  }
  fs::rename(unfinished, path);
  std::vector<std::pair<fs::file_time_type, fs::path>> kept;
  for (const auto& each : fs::directory_iterator(folder)) {
    std::error_code gone;
    kept.emplace_back(fs::last_write_time(each, gone), each.path());
  }
  std::ranges::sort(kept, std::greater<>());
  for (std::size_t i = kMostKept; i < kept.size(); ++i) {
    std::error_code gone;
    fs::remove(kept[i].second, gone);
  }
}

std::optional<std::vector<Entry>> kept_listing(const std::string& fingerprint,
                                               const fs::path& folder) {
  // It comes from a host, and is to be a name in the folder.
  if (fingerprint.size() != 64 ||
      fingerprint.find_first_not_of("0123456789abcdef") != std::string::npos)
    return std::nullopt;
  std::ifstream file(folder / fingerprint, std::ios::binary);
  std::vector<Entry> entries;
  Entry entry;
  while (std::getline(file, entry.name, '\0') && std::getline(file, entry.facts, '\0'))
    entries.push_back(entry);
  if (fingerprint_of(entries) != fingerprint) return std::nullopt;
  return entries;
}

}  // namespace dtool::tree_sync
