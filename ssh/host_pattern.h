// SPDX-License-Identifier: MIT
// Host patterns as in pdsh, Slurm and ClusterShell, such as `gpu[01-08,12]`: unfolded to names, and
// folded back for output.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host.h"

namespace dtool::ssh {

/// A list with more hosts is taken for a typing error.
inline constexpr std::size_t kMostHosts = 100'000;

/// The hosts of group `@name`; throws std::invalid_argument if there is no such group.
using GroupLookup = std::function<std::string(std::string_view group)>;

/// Unfolds a comma-separated list of patterns into words, in order: `a[1-2,5]b` gives `a1b a2b
/// a5b`. Several brackets multiply, leading zeros keep the width, and brackets around an IPv6
/// address stay. Throws std::invalid_argument naming the pattern and its fault: an empty list or
/// element, a bracket or range without an end, a range that runs backwards, more than kMostHosts
/// names.
std::vector<std::string> expand(std::string_view patterns);

/// Reads a whole `--runs_on`: patterns and groups (`@name`, looked up with `groups`, may contain
/// groups). Each word goes through parse_host; no host may occur twice.
std::vector<Host> parse_hosts(std::string_view runs_on, const GroupLookup& groups);

/// Folds names into patterns for output: `gpu[01-03,07],login`. Keeps the order of first
/// appearance; expand() gives the same set back.
std::string fold(const std::vector<std::string>& names);

}  // namespace dtool::ssh
