// SPDX-License-Identifier: MIT
// Holds the port at which machine 0's session will listen, from the check of the hosts until the
// session has it: a process that binds the port and does not listen.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace dtool::host {

/// A port that is free and not in `taken`, and a process that holds it for the run of that folder.
/// If no process can be made, the port is only free. 0: no port could be taken.
std::uint16_t hold_free_port(const std::set<std::uint16_t>& taken, const std::string& run_folder);

/// The main function of that process, which has the port's socket as its standard input. It ends
/// when the session has tried to listen, when the run's folder is gone, when the process above ends
/// (its pid and start: sshd, or a dtool on this host), and after an hour.
int run_port_holder(const std::string& run_folder, const std::string& pid,
                    const std::string& start);

}  // namespace dtool::host
