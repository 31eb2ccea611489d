// SPDX-License-Identifier: MIT
// What `dtool fetch` decides before it asks any host: which folders of which machines, and how
// sizes are shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "killfiles/killfile.h"
#include "sync/pull.h"

namespace dtool::cli {

/// What a machine has to fetch: its output folder, and its log if that lies elsewhere. Throws
/// UsageError if the killfile names neither.
std::vector<tree_sync::Source> sources_of(const killfiles::Machine& machine,
                                          const std::vector<std::string>& only);

/// For a source on this machine: throws UsageError if `destination` is inside `source`, or the
/// other way round.
void require_apart(const tree_sync::Source& source, const std::filesystem::path& destination);

/// Bytes that may still come from a machine of which `brought` have come. Without `max_gb`: any
/// number.
std::optional<std::uint64_t> still_allowed(std::optional<double> max_gb, std::uint64_t brought);

/// What is told of files that were still growing (sync/pull.h).
std::string grown_text(const std::vector<std::string>& names);

/// What is told of what does not come (Pulled::skipped).
std::string skipped_text(const std::vector<std::string>& names);

/// Throws UsageError if another user of this machine could put something into the folder, or lead
/// elsewhere what is written there.
void require_no_strangers(const std::filesystem::path& folder);

/// `512 B`, `3.4 MB`.
std::string size_text(std::uint64_t bytes);

/// `[######----]  60%`
std::string bar(double fraction);

}  // namespace dtool::cli
