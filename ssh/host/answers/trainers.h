// SPDX-License-Identifier: MIT
// The trainers on this host: of the launcher, of the user, of the system, and the bundle that dtool
// sent: `~/.dtool/trainers/SHA256/dtool-trainer`, with its libraries.
#pragma once

#include <string>
#include <vector>

#include "ssh/wire/check.h"

namespace dtool::host {

/// An environment that is ready: the variables are this process's, and these words stand before a
/// program.
using CommandPrefix = std::vector<std::string>;

/// Marks the bundle in `folder` as used, and removes the others beside it that were not used for 30
/// days and that no run names.
void use_bundle(const std::string& folder);

/// Fills in the reply's words about the trainer: the first one that is of the wanted version and
/// has its libraries here, else the bundle if it is there, else the first one that was found.
void find_trainer(const CheckRequest& request, const CommandPrefix& inside, CheckReply& reply);

}  // namespace dtool::host
