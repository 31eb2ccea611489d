// SPDX-License-Identifier: MIT
// Who this host is, so that a run is not looked for on another machine with the same name.
#pragma once

#include <string>

namespace dtool::host {

/// Four words: machine id, host name, boot id, number of the process namespace; `-` for an unknown
/// one. killfiles/killfile.h compares them.
std::string identify_host();

}  // namespace dtool::host
