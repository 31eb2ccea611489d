#include "sync/kept_listings.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <system_error>
#include <utility>

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostKept = 8;

bool is_fingerprint(const std::string& name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// What is in the folder, newest first.
std::vector<fs::path> newest_first(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  fs::directory_iterator each(folder, error);
  for (; !error && each != fs::directory_iterator(); each.increment(error)) {
    std::error_code gone;
    found.emplace_back(fs::last_write_time(*each, gone), each->path());
  }
  std::ranges::sort(found, std::greater<>());
  std::vector<fs::path> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace

void keep_listing(const Listing& listing, const fs::path& root, const fs::path& folder) {
  // Names are for nobody else's eyes.
  ::mkdir(folder.parent_path().c_str(), 0700);
  ::mkdir(folder.c_str(), 0700);
  fs::permissions(folder, fs::perms::owner_all);  // throws where it could not be made
  const fs::path path = folder / listing.fingerprint;
  const fs::path unfinished = folder / fmt::format("new.{}", ::getpid());
  std::ofstream file(unfinished, std::ios::binary);
  file << root.native() << '\0' << *listing.text;
  file.close();
  if (!file) {
    std::error_code ignored;
    fs::remove(unfinished, ignored);
    throw fs::filesystem_error("cannot write", unfinished,
                               std::make_error_code(std::errc::io_error));
  }
  fs::rename(unfinished, path);
  const auto kept = newest_first(folder);
  for (std::size_t i = kMostKept; i < kept.size(); ++i) {
    std::error_code gone;
    fs::remove(kept[i], gone);
  }
}

std::optional<Listing> kept_listing(const std::string& fingerprint, const fs::path& folder) {
  // It comes from a host, and is to be a name in the folder.
  if (!is_fingerprint(fingerprint)) return std::nullopt;
  std::ifstream file(folder / fingerprint, std::ios::binary);
  std::string root;
  std::getline(file, root, '\0');
  Listing listing = make_listing({std::istreambuf_iterator<char>(file), {}});
  if (listing.fingerprint != fingerprint) return std::nullopt;
  return listing;
}

std::optional<std::string> last_kept(const fs::path& root, const fs::path& folder) {
  for (const fs::path& path : newest_first(folder)) {
    std::ifstream file(path, std::ios::binary);
    std::string kept_root;
    std::getline(file, kept_root, '\0');
    if (kept_root == root.native() && is_fingerprint(path.filename())) return path.filename();
  }
  return std::nullopt;
}

}  // namespace dtool::tree_sync
