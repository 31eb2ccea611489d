// SPDX-License-Identifier: MIT
// What is known of a run that `show` or `diff` was told to explain: its record, else the one that
// lies on its hosts, else what its killfile tells.
#pragma once

#include <string>

#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/record/record.h"
#include "cli/settings.h"

namespace dtool::cli {

/// The id that `id` is the beginning of, of a run that has a record or a killfile here; the newest
/// if it is empty. A run without a killfile is meant only if none that matches has one. Throws
/// UsageError if no or several runs match.
std::string complete_id(const std::string& id);

/// `id`: a run's id or the beginning of one, of a run that is recorded here, even if it was
/// forgotten; empty: the newest. Hosts are asked only for a record that is missing here or not
/// complete; one that does not answer is told in a note. Throws UsageError if no or several runs
/// match, std::runtime_error if the record cannot be read.
RunRecord explained_run(Console& console, const std::string& id, const HostOptions& hosts,
                        SettingsFiles& settings);

}  // namespace dtool::cli
