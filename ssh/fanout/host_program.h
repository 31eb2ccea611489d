// Runs dtool-host on a host for one command, and brings it there first where it is missing.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ssh/connection.h"

namespace dtool::ssh {

/// One dtool-host that this dtool holds: for one kind of processor.
struct HostProgram {
  std::string_view machine;  ///< as `uname -m` says it
  std::string_view sha256;   ///< in hex digits; names its folder on the hosts
  std::string_view bytes;
};

/// The command line that starts it in a login shell of any kind. Where it is missing the line
/// prints what the host is instead, and exits with kHostProgramMissing.
std::string host_program_line();
inline constexpr int kHostProgramMissing = 75;

/// Makes the connection run host_program_line(), whose streams are the command's: `open_streams`
/// gives them, once for each try. Throws HostError.
asio::awaitable<int> run_host_program(Connection& connection,
                                      std::function<CommandStreams()> open_streams,
                                      Deadline deadline);

}  // namespace dtool::ssh
