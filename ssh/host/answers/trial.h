// SPDX-License-Identifier: MIT
// Tests whether machine 0 can listen at its address, and whether the others reach it there: with
// the same port and the same proofs as the sessions of a run (report_port.h, channel.h).
#pragma once

#include "ssh/wire/check.h"

namespace dtool::host {

/// Leaves a process behind that listens.
ListenReply listen_for_trial(const ListenRequest& request);

HostClock tell_clock();
ReachReply reach_for_trial(const ReachRequest& request);

}  // namespace dtool::host
