// SPDX-License-Identifier: MIT
// The files of masters in the folder of kept connections: each master's socket and, beside it, a
// file that says where the connection leads. Commands that use the connection hold that file's
// lock. Masters opens connections there, and `dtool disconnect` ends them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "ssh/host.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/machine/files.h"
#include "ssh/program/program.h"

namespace dtool::ssh {

/// The lock of the first unused connection with that key, and its name. Without a lock: too many
/// are in use.
OwnedFd take_master_slot(const KeptFolder& folder, const std::string& key, std::string& name);

/// Writes into the locked file where the connection leads.
void describe_master(const OwnedFd& lock, const Host& host, const ProgramSettings& settings);

void remove_master_files(const KeptFolder& folder, const std::string& name);

/// A master that is kept for later commands, as `dtool disconnect` sees it.
struct KeptMaster {
  std::string host;
  std::string target;  ///< `user@address:port`
  bool is_in_use = false;
  pid_t silent = 0;  ///< the process, where it did not answer and so was not ended
};

/// Ends the kept masters in the folder that lead to one of `targets`, or all of them. Removes the
/// files of dead ones.
std::vector<KeptMaster> end_kept_masters(const KeptFolder& folder,
                                         const std::optional<std::vector<std::string>>& targets);

}  // namespace dtool::ssh
