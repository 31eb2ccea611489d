// SPDX-License-Identifier: MIT
// Ends a run on its hosts and forgets it. kill uses it, and run for a run that did not start whole.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

class Console;

/// A host as recorded, and as it answered.
struct FoundHost {
  killfiles::HostIdentity recorded;
  killfiles::HostIdentity found;
  std::vector<std::string> unseen;  ///< processes that may be the run's, without proof
};

/// The result of ending a run's machines.
struct KillReport {
  std::vector<ssh::HostResult>
      results;  ///< a host with something left has a failure's exit code and error; so has a host
                ///< whose answer proves nothing (Failure::unproven)
  std::vector<FoundHost> hosts;  ///< one entry for each result, in the order of the results
  int ended = 0;                 ///< processes, over all hosts
  int forced = 0;                ///< how many of them needed KILL
  std::string cancelled;         ///< jobs of a scheduler that were ended: `job 12`; or empty
  bool none_left = false;        ///< every host looked again and found none
};

/// Whether a start of the run may still be on its way to a host. If nothing can be written there,
/// kill's mark cannot stop such a start.
enum class Starts { may_come, have_answered };

/// Ends all processes of the run on the remote's hosts, in one step per host, even if several
/// machines are reached through it. If the run's folder is gone, the killfile `file` says whether
/// another `dtool kill` had proven that nothing is left; empty: there is no file to ask.
KillReport end_run(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile,
                   std::chrono::milliseconds grace, const std::filesystem::path& file = {},
                   Starts starts = Starts::may_come);

/// Whether the answer to a host::KillRequest proves that nothing is left on its host.
bool is_proven_ended(const ssh::HostResult& result);

/// Deletes the folders of a run of which nothing is left, then its killfile. First it records in
/// the killfile that nothing is left: another kill, at the same time or after an interruption here,
/// finds the folders gone and reads why. Throws std::filesystem::filesystem_error if the killfile
/// cannot be deleted; where that can be foreseen, the folders stay.
void forget_run(Console& console, ssh::Remote& remote, killfiles::Killfile killfile,
                const std::filesystem::path& file);

}  // namespace dtool::cli
