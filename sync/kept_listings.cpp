// SPDX-License-Identifier: MIT
#include "sync/kept_listings.h"

#include <fstream>
#include <iterator>

#include "ssh/machine/home_folder.h"
#include "sync/kept_files.h"

namespace dtool::tree_sync {
namespace {

namespace fs = std::filesystem;

bool is_fingerprint(const std::string& name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

fs::path sent_listings() {
  return fs::path(ssh::home_folder()) / ".dtool" / "sent";
}

void keep_listing(const Listing& listing, const fs::path& root, const fs::path& folder) {
  try {
    keep_file(folder, listing.fingerprint, root.native() + '\0', *listing.text);
  } catch (const fs::filesystem_error&) {
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
