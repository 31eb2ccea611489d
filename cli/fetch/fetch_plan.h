// What `dtool fetch` works out before it asks any host: which folders of which machines, and how
// amounts are shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "killfiles/killfile.h"
#include "sync/pull.h"

namespace dtool::cli {

/// The places in the killfile of the machines with these ids; all where `ids` is empty. Throws
/// UsageError on an id that the run does not have.
std::vector<std::size_t> choose_machines(const killfiles::Killfile& killfile,
                                         const std::vector<int>& ids);

/// What a machine has that is worth fetching: its output folder, and its log where that lies
/// elsewhere. Throws UsageError if the killfile names neither.
std::vector<tree_sync::Source> sources_of(const killfiles::Machine& machine,
                                          const std::vector<std::string>& only);

/// Throws UsageError if `destination` cannot take what `source`, on this machine, has: it is in
/// it, or the other way round.
void require_apart(const tree_sync::Source& source, const std::filesystem::path& destination);

/// `512 B`, `3.4 MB`.
std::string size_text(std::uint64_t bytes);

/// `[######----]  60%`
std::string bar(double fraction);

}  // namespace dtool::cli
