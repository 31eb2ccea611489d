// SPDX-License-Identifier: MIT
// Hostfiles in Open MPI's and DeepSpeed's form: one host a line, optional slots, comments, blank
// lines.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "ssh/host.h"

namespace dtool::ssh {

/// One line of a hostfile.
struct HostfileEntry {
  Host host;
  std::optional<int> slots;  ///< processes on this host, from `slots=N` or `max_slots = N`
};

/// Reads a hostfile, `-` from standard input. Throws std::invalid_argument with `file:line:` and
/// the fault: an unreadable file, no host in it, a malformed host, an unknown key, slots that are
/// not a positive number, a host named twice.
std::vector<HostfileEntry> read_hostfile(const std::filesystem::path& file);

}  // namespace dtool::ssh
