// Hosts that failed, told to a person: like failures once, under the hosts they befell.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/console.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// `exit code 3`, `killed by signal 9`, or why there was no answer.
std::string describe(const ssh::HostResult& result);

/// Tells which hosts failed and why, like ones folded, with `doing` in the headline: `2 of 8 hosts
/// failed: doing`. Nothing if none did. Returns their number.
std::size_t report_failures(Console& console, const std::vector<ssh::HostResult>& results,
                            std::string_view doing);

/// One host's result, as every `--json` has it: host, exit_code, failure, error, hint, elapsed_s.
nlohmann::json to_json(const ssh::HostResult& result);

/// A hint with `hosts` in the place of ssh::kHostsInHint, quoted for a shell.
std::string hint_for(std::string hint, const std::string& hosts);

/// Host names as a folded pattern.
std::string fold_hosts(const std::vector<ssh::Host>& hosts);

/// The same where a line is to stay short: of many patterns the first ones, and how many hosts.
std::string fold_hosts_in_short(const std::vector<ssh::Host>& hosts);

/// The exit code of a command: interrupted, some failed, or all well.
int exit_code_of(const std::vector<ssh::HostResult>& results, const ssh::Remote& remote);

}  // namespace dtool::cli
