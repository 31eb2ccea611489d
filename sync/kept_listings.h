// What the trees looked like that this launcher sent last, in files below `~/.dtool/sent`: from
// them it knows what a host has that has one of those trees.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sync/listing.h"

namespace dtool::tree_sync {

/// Keeps the listing of the tree below `root` in `folder`, under its fingerprint, beside the newest
/// seven others. Throws std::filesystem::filesystem_error if that cannot be.
void keep_listing(const Listing& listing, const std::filesystem::path& root,
                  const std::filesystem::path& folder);

/// The listing kept under that fingerprint. Nothing if there is none, or not that.
std::optional<Listing> kept_listing(const std::string& fingerprint,
                                    const std::filesystem::path& folder);

/// The fingerprint under which the tree below `root` was kept last. Nothing if it was not, or
/// so many others were since.
std::optional<std::string> last_kept(const std::filesystem::path& root,
                                     const std::filesystem::path& folder);

}  // namespace dtool::tree_sync
