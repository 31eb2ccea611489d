// SPDX-License-Identifier: MIT
// Asks hosts whether the sources of a `dtool fetch` or `dtool copy --from` exist, and finds out
// which hosts share them.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ssh/remote.h"
#include "sync/rsync.h"

namespace dtool::tree_sync {

/// One question.
struct SourceQuestion {
  std::size_t host = 0;  ///< index into Remote::hosts()
  Source source;
  /// If the source is the output folder of the run with that id, the host first puts there what the
  /// run's processes wrote in their tree.
  std::string run_id = {};
};

/// Its answer. If there is no such source, `result` says so.
struct SourceAnswer {
  ssh::HostResult result;
  std::string host = {};  ///< its identity, as identify_host() writes it
  /// The first of the questions whose host has proven that it shares this host's source; nothing if
  /// it is this one. Proven is: one of them wrote a random mark there, and the other found it.
  /// Where no host may write, each source counts as another one.
  std::optional<std::size_t> same_as = {};
};

/// Asks all questions, at most one per host. `timeout` is for each of a host's answers.
std::vector<SourceAnswer> look_at_sources(ssh::Remote& remote,
                                          const std::vector<SourceQuestion>& looks,
                                          ssh::Events& events, std::chrono::milliseconds timeout);

}  // namespace dtool::tree_sync
