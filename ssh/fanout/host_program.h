// SPDX-License-Identifier: MIT
// How dtool-host is found and started on a host, and how it comes there.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host_error.h"
#include "ssh/session/connection.h"

namespace dtool::ssh {

/// What host_program_line() prints before it starts the program.
inline constexpr std::string_view kHostProgramBegins = "dtool-host begins\n";
/// What it prints if the program is missing; behind it stands the host's kind.
inline constexpr std::string_view kHostProgramNeeded = "dtool-host needed on ";

/// What becomes of a program there that is not what dtool sent.
enum class Damaged { is_started, is_removed };
/// The command line that starts it with these words in any login shell, for any processor. If it is
/// missing, the line prints the host's kind instead, and exits with kHostProgramMissing. It prints
/// no beginning if it is not told to serve.
std::string host_program_line(Damaged damaged = Damaged::is_started,
                              const std::vector<std::string>& words = {"serve"});
inline constexpr int kHostProgramMissing = 75;

/// Installs it on a host of that kind, `Linux x86_64` or `Linux x86_64 with gzip`. Throws
/// HostError.
asio::awaitable<void> bring_host_program(Connection& connection, std::string system,
                                         Deadline deadline);

/// Why a log-in did not come as far as dtool-host: its exit code (128 + signal), and the beginnings
/// of its output.
HostError not_begun(int exit_code, const std::string& out, const std::string& errors);

// Which programs for hosts this dtool carries. The build writes the .cpp (host_program_hash.cmake),
// so that a change of dtool-host compiles little else.

/// A dtool-host that this dtool carries, for one kind of processor.
struct HostProgramName {
  std::string_view machine;  ///< the processor's name as `uname -m` says it
  std::string_view sha256;   ///< the SHA-256 in hex digits; names its folder on the hosts
};

/// In the order of host_program.S.
std::span<const HostProgramName> host_program_names();

}  // namespace dtool::ssh
