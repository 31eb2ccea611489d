// SPDX-License-Identifier: MIT
// Listings of the trees that this launcher sent last, in files below `~/.dtool/sent`. A host that
// still has one of those trees need not list its files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sync/listing.h"

namespace dtool::tree_sync {

/// `~/.dtool/sent`.
std::filesystem::path sent_listings();

/// Keeps the listing of the tree below `root` in `folder`, under its fingerprint, beside the seven
/// newest others. If that fails, as in a full home, the next push is slower but still correct: it
/// is not reported.
void keep_listing(const Listing& listing, const std::filesystem::path& root,
                  const std::filesystem::path& folder = sent_listings());

/// The listing kept under that fingerprint. Nothing if it is missing or damaged.
std::optional<Listing> kept_listing(const std::string& fingerprint,
                                    const std::filesystem::path& folder = sent_listings());

/// The fingerprint of the last kept listing of the tree below `root`. Nothing if none was kept, or
/// if newer ones have displaced it.
std::optional<std::string> last_kept(const std::filesystem::path& root,
                                     const std::filesystem::path& folder = sent_listings());

}  // namespace dtool::tree_sync
