// SPDX-License-Identifier: MIT
// Checks hosts and gives the trainer to those that have none: for `dtool run` and `dtool install`.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/ready/check.h"
#include "ssh/remote.h"
#include "sync/push/push.h"

namespace dtool::cli {

/// Judges the hosts after a step, which is named as a failure names it: `sending the trainer`.
/// False ends the work there.
using GoesOn = std::function<bool(const std::vector<Checked>& checked, std::string_view doing)>;

/// The push for the next check of the hosts (check_hosts), or null.
using NextPush = std::function<tree_sync::Pushing*()>;

struct SuppliedHosts {
  std::vector<Checked> checked;
  std::vector<bool> is_sent;  ///< which of them were sent the trainer, and have it now
  bool went_on = true;        ///< through all steps
};

/// Checks all hosts. If some await the trainer, sends it to them and checks all once more; a host
/// that failed before that stays as it failed. Throws std::runtime_error if this machine cannot
/// make the bundle ready.
SuppliedHosts check_and_supply(Console& console, ssh::Remote& remote, Needs needs,
                               const GoesOn& goes_on, const NextPush& next_push);

}  // namespace dtool::cli
