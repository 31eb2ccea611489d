// SPDX-License-Identifier: MIT
// Environments of Python packages that dtool builds on hosts, from wheels that it sent:
// `~/.dtool/environments/HASH/venv`. No host needs a network, or pip.
#pragma once

#include "ssh/host/protocol.h"

namespace dtool::host {

/// The part of a PythonReply that is about python3.
PythonReply look_at_python();

/// Answers, and builds the environment if that is asked for. Throws BadMessage on a name that is no
/// hash.
PythonReply ready_python(const PythonRequest& request);

}  // namespace dtool::host
