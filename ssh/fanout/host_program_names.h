// SPDX-License-Identifier: MIT
// Which programs for hosts this dtool carries. The build writes the .cpp (host_program_hash.cmake),
// so that a change of dtool-host compiles little else.
#pragma once

#include <span>
#include <string_view>

namespace dtool::ssh {

/// A dtool-host that this dtool carries, for one kind of processor.
struct HostProgramName {
  std::string_view machine;  ///< as `uname -m` says it
  std::string_view sha256;   ///< in hex digits; names its folder on the hosts
};

/// In the order of host_program.S.
std::span<const HostProgramName> host_program_names();

}  // namespace dtool::ssh
