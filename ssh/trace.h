// What was sent to each host and what came from it, with times, for `--trace`: a file a host. What
// files hold, scripts and tokens are told by their size alone.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "ssh/host/frames.h"
#include "ssh/remote.h"

namespace dtool::ssh {

/// `KillRequest("x_1", ["s"], ["~/.dtool/runs/x_1/machine0"], 5000)`; a message that cannot be read
/// by its size.
std::string describe(const host::Frame& frame);

/// The same hosts, with a file `NUMBER_HOST.trace` in the folder for each that is asked something.
/// Throws std::invalid_argument if nothing can be written there.
std::unique_ptr<Remote> traced(std::unique_ptr<Remote> remote, const std::filesystem::path& folder);

}  // namespace dtool::ssh
