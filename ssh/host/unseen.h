// SPDX-License-Identifier: MIT
// Finds processes that may be the run's although nothing proves it: the run handed them to a server
// of the user's that was there before (tmux, screen, systemd, docker, podman, at), they hide their
// environment, they begin and end all the time, or only their output and folder are the run's, as a
// person's may be. kill names them and leaves them alone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dtool::host {

/// One line for each server or process: `tmux (pid 12) has 2 processes that began after the run:
/// …`. `began`: the start of the run, in clock ticks since the boot. The processes of the caller's
/// own terminal are left out. `places`: real paths of the run's logs and folders. Throws
/// std::runtime_error if not all processes can be seen.
std::vector<std::string> find_unseen(const std::string& run_id, std::uint64_t began,
                                     const std::vector<std::string>& places);

/// A process that forks and ends all the time, with no sign of a run: at each look another one is
/// there, which `meet` tells once. A look misses it between its fork and its parent's end, so one
/// look is three tries. The last one that was met, if all looks met one. `rest` waits.
std::optional<pid_t> follow_hopper(const std::function<std::optional<pid_t>()>& meet,
                                   const std::function<void(std::chrono::milliseconds)>& rest);

}  // namespace dtool::host
