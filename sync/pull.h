// SPDX-License-Identifier: MIT
// Brings files from hosts to this machine: rsync receives here over dtool's own connections. `dtool
// fetch` calls it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ssh/remote.h"
#include "sync/rsync.h"
#include "sync/tree.h"

namespace dtool::tree_sync {

/// What to bring from one host, and where to.
struct Pull {
  std::size_t host = 0;  ///< index into Remote::hosts()
  Source source;
  std::string destination;            ///< an absolute folder of this machine, which must be there
  std::chrono::seconds silence{300};  ///< the silence after which the host is given up
  std::optional<std::uint64_t> most = {};  ///< bytes that may come from it
  Foreign foreign = Foreign::refuse;       ///< the treatment of what is here, and did not come so
};

/// One answer of pull().
struct Pulled {
  ssh::HostResult result;
  Sent sent;  ///< files that came in this pull; if it failed, those that came whole
  /// Texts that grew all the time: of these came what they had when they were seen.
  std::vector<std::string> grown = {};
  /// Links that lead out of the source or are absolute (`name -> target`), pipes, sockets and
  /// devices, as rsync writes their names; the first thousand. They do not come.
  std::vector<std::string> skipped = {};
  bool has_foreign = false;  ///< it failed because of what is here, and did not come so
  bool is_complete = false;  ///< rsync has run to its end: what is lacking was left out
};

/// Runs all pulls, at most one per host; results in the order of `pulls`. If rsync failed,
/// `exit_code` is its exit code and `error` its own message. A file that vanished on the host
/// meanwhile is not a failure.
///
/// A file gets its name here when it is known to be whole: the host is asked again for what it sent
/// until nothing has changed since. A file that never holds still does not come, and neither does
/// one in whose place is something of another kind; both are named, and the pull has failed. An
/// interrupt keeps aside what has come, and the next pull continues from there.
std::vector<Pulled> pull(ssh::Remote& remote, const std::vector<Pull>& pulls, ssh::Events& events);

/// Gives the result of a failed pull_program its sentence, with rsync's own message and a hint.
void explain_pull(ssh::HostResult& result);

// Folders of fetched outputs are marked, so that they are no code of the next run and no other
// run's outputs come into them. `dtool fetch` marks them, and the reader of a tree looks.

/// The mark's name. Its text has git ignore the folder, too.
inline constexpr const char* kFetchedMark = ".gitignore";

/// The run whose outputs were fetched into the folder; nothing if it has no mark.
std::optional<std::string> fetched_run(const std::filesystem::path& folder);

/// Whether the folder has nothing but the beginning of this run's mark, which a fetch that was
/// killed, or met a full disk, leaves; also an empty file.
bool has_only_half_a_mark(const std::filesystem::path& folder, const std::string& run_id);

/// Marks an existing folder, unless it has this run's mark. Throws std::runtime_error naming the
/// file that cannot be written.
void mark_fetched(const std::filesystem::path& folder, const std::string& run_id);

/// Takes the folder away if it has nothing but the mark.
void remove_if_only_marked(const std::filesystem::path& folder);

}  // namespace dtool::tree_sync
