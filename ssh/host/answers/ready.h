// SPDX-License-Identifier: MIT
// Prepares a host for a set-up script.
#pragma once

#include "ssh/wire/check.h"

namespace dtool::host {

/// Throws std::runtime_error with a sentence if the key cannot be added or the folder cannot be
/// made.
ReadyReply ready_host(const ReadyRequest& request);

}  // namespace dtool::host
