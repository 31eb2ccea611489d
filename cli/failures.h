// SPDX-License-Identifier: MIT
// Tells a person which hosts failed: each failure once, with the hosts that have it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/console.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// `exit code 3`, `killed by signal 9`, or why there was no answer.
std::string describe(const ssh::HostResult& result);

/// Reports the hosts that failed and why, and folds equal failures. `doing` is part of the
/// headline: `2 of 8 hosts failed: doing`, or `failed: doing` if there is only one host. Hosts that
/// were ended for another's failure are not counted there. Prints nothing if no host failed.
/// Returns the number of all hosts that did not end well.
std::size_t report_failures(Console& console, const std::vector<ssh::HostResult>& results,
                            std::string_view doing);

/// One host's result in the form of every `--json`: host, exit_code, failure, error, hint,
/// elapsed_s.
nlohmann::json to_json(const ssh::HostResult& result);

/// A hint with `hosts` in place of ssh::kHostsInHint, quoted for a shell.
std::string hint_for(std::string hint, const std::string& hosts);

/// Host names as a folded pattern.
std::string fold_hosts(const std::vector<ssh::Host>& hosts);

/// The same for a short line: if there are many patterns, the first ones and the number of hosts.
std::string fold_hosts_in_short(const std::vector<ssh::Host>& hosts);

/// The exit code of a command: interrupted, some failed, or all well.
int exit_code_of(const std::vector<ssh::HostResult>& results, const ssh::Remote& remote);

}  // namespace dtool::cli
