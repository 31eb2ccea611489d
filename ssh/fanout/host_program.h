// SPDX-License-Identifier: MIT
// Runs dtool-host on a host for one command, and installs it there first if it is missing.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ssh/connection.h"
#include "ssh/host_error.h"

namespace dtool::ssh {

/// The command line that starts it in any login shell, for any processor. If it is missing, the
/// line prints the host's kind instead, and exits with kHostProgramMissing.
enum class Damaged { is_started, is_removed };  ///< a program there that is not what dtool sent
std::string host_program_line(Damaged damaged = Damaged::is_started);
inline constexpr int kHostProgramMissing = 75;

/// Why a log-in did not come as far as dtool-host: its exit code (128 + signal), and the beginnings
/// of its output.
HostError not_begun(int exit_code, const std::string& out, const std::string& errors);

/// Runs host_program_line() over the connection. A program that ends before it speaks may be
/// damaged: if it is, it is brought again. One that is started and does not speak fails, and the
/// connection with it. `open_streams` gives the command's streams, once for
/// each try. `log_in_said` takes the output that came before the program spoke. Throws HostError.
asio::awaitable<int> run_host_program(Reactor& reactor, Connection& connection,
                                      std::function<CommandStreams()> open_streams,
                                      std::string& log_in_said, Deadline deadline);

}  // namespace dtool::ssh
