// SPDX-License-Identifier: MIT
// Records the messages to and from each host with times, for `--trace`: one file per host. Of texts
// that are host::Hidden, or that have several lines or more than 200 characters, only the size is
// recorded.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "ssh/remote.h"
#include "ssh/wire/protocol.h"

namespace dtool::ssh {

/// `KillRequest("x_1", ["s"], ["~/.dtool/runs/x_1/machine0"], 5000)`; for an unreadable message its
/// size.
std::string describe(const host::Frame& frame);

/// The same hosts, with a file `NUMBER_HOST.trace` in the folder for each host that is asked
/// something. Throws std::invalid_argument if nothing can be written there.
std::unique_ptr<Remote> traced(std::unique_ptr<Remote> remote, const std::filesystem::path& folder);

}  // namespace dtool::ssh
