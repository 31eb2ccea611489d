// What may be the work of a run and cannot be told to be: it was handed to a server of the user's
// that was there before (tmux, screen, systemd, docker, at), it hides its environment, or it begins
// and ends all the time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtool::host {

/// A sentence's beginning for each, `tmux (pid 12) has 2 processes that began after the run: …`.
/// `began`: when the run did, in clock ticks since the boot. What belongs to the terminal in which
/// this is asked for is left out. Throws std::runtime_error where not everything can be seen.
std::vector<std::string> find_unseen(const std::string& run_id, std::uint64_t began);

}  // namespace dtool::host
