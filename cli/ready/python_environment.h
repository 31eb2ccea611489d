// SPDX-License-Identifier: MIT
// `--environment`: the same packages on all hosts. This machine resolves a file and fetches
// packages of Python or conda, sends them as code is sent, and each host builds an environment
// below
// `~/.dtool/environments/HASH`.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/ready/python_packages.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Judges the hosts' results after a step, which is named as a failure names it. False: the work
/// ends there.
using JudgeStep =
    std::function<bool(const std::vector<ssh::HostResult>& results, std::string_view doing)>;

/// Gives every host the environment that is wanted, and asks nothing but that where all have it.
/// Returns the environment's folder on hosts, from `~/`; empty: a step went wrong, as `judge` was
/// told. Throws UsageError and the rest that resolve_python and resolve_conda throw.
std::string supply_environment(Console& console, ssh::Remote& remote, PackageNeeds needs,
                               const JudgeStep& judge);

}  // namespace dtool::cli
