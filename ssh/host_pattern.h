// Host patterns as pdsh, Slurm and ClusterShell write them, `gpu[01-08,12]`, unfolded to names and
// folded back for output.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host.h"

namespace dtool::ssh {

/// More hosts than this in one list is taken for a slip of the finger.
inline constexpr std::size_t kMostHosts = 100'000;

/// The names behind `@name`; throws std::invalid_argument if there is no such group.
using GroupLookup = std::function<std::string(std::string_view group)>;

/// Unfolds a comma-separated list of patterns into words, in order: `a[1-2,5]b` gives `a1b a2b
/// a5b`, several brackets multiply, zeros in front keep the width, brackets that hold an IPv6
/// address are left alone. Throws std::invalid_argument naming the pattern and its fault: an empty
/// list or element, a bracket or a range that does not end, a range that runs backwards, more than
/// kMostHosts names.
std::vector<std::string> expand(std::string_view patterns);

/// Reads a whole `--runs_on`: patterns, groups (`@name`, looked up with `groups`, which may hold
/// groups in turn), each word through parse_host, no host twice.
std::vector<Host> parse_hosts(std::string_view runs_on, const GroupLookup& groups);

/// Folds names into patterns for output: `gpu[01-03,07],login`. The order of first appearance is
/// kept; expand gives the same set back.
std::string fold(const std::vector<std::string>& names);

}  // namespace dtool::ssh
