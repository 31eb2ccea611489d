// Who this host is, so that a run is not looked for on another machine of the same name.
#pragma once

#include <string>

namespace dtool::host {

/// Four words: machine id, host name, boot id, number of the process namespace; `-` for what is not
/// known. killfiles/host_identity.h says how two are compared.
std::string identify_host();

}  // namespace dtool::host
