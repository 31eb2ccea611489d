// SPDX-License-Identifier: MIT
// A host as the user names it, and how that name is read. All other files of this folder use this
// form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::ssh {

/// One machine. Parts that are left out here (user, port, real address) come from the SSH client
/// configuration.
struct Host {
  std::string name;  ///< host name or address without brackets: `gpu01`, `10.0.0.1`, `fe80::1`
  std::string user;  ///< empty: the configuration's, else the name of the user who runs dtool
  std::uint16_t port = 0;  ///< 0: the configuration's, else 22
  bool is_local = false;   ///< `local`: this machine, reached without SSH

  bool operator==(const Host&) const = default;
};

/// Reads `[user@]host[:port]`, `[user@][v6::addr]:port`, a bare IPv6 address, or `local`. Throws
/// std::invalid_argument with a sentence that quotes `text` and names its fault.
Host parse_host(std::string_view text);

/// The shortest text that parse_host reads back to the same host.
std::string to_string(const Host& host);

/// The same text for the same host: name, user and port are equal; port 22 is SSH's own.
std::string mark_of(Host host);

/// Throws std::invalid_argument naming the first host that stands in `hosts` twice.
void require_distinct(const std::vector<Host>& hosts);

// Host patterns as in pdsh, Slurm and ClusterShell, such as `gpu[01-08,12]`: unfolded to names, and
// folded back for output.

/// A list with more hosts is taken for a typing error.
inline constexpr std::size_t kMostHosts = 100'000;

/// The hosts of group `@name`, or of all groups for `*`; throws std::invalid_argument if there is
/// no such group.
using GroupLookup = std::function<std::string(std::string_view group)>;

/// Unfolds a comma-separated list of patterns into words, in order: `a[1-2,5]b` gives `a1b a2b
/// a5b`, `n[0-4/2]` `n0 n2 n4`. Several brackets multiply, leading zeros keep the width, and
/// brackets around an IPv6 address stay. Throws std::invalid_argument naming the pattern and its
/// fault: an empty list or element, a bracket or range without an end, a range that runs backwards,
/// more than kMostHosts names.
std::vector<std::string> expand(std::string_view patterns);

/// Reads a whole `--runs_on`: patterns and groups (`@name`, looked up with `groups`, may contain
/// groups), joined from left to right by `,` (and), `!` (without), `&` (in both) and `^` (in one of
/// them), as in ClusterShell. Each word goes through parse_host; no host may occur twice, and one
/// must be left.
std::vector<Host> parse_hosts(std::string_view runs_on, const GroupLookup& groups);

/// The same as a set: a host that occurs twice stands at its first place, and none may be left.
std::vector<Host> parse_set(std::string_view patterns, const GroupLookup& groups);

/// Folds names into patterns for output: `gpu[01-03,07],login`. Keeps the order of first
/// appearance; expand() gives the same set back.
std::string fold(const std::vector<std::string>& names);

// Hostfiles in Open MPI's and DeepSpeed's form (config/hostfile.cpp): one host a line, optional
// slots, comments, blank lines.

/// One line of a hostfile.
struct HostfileEntry {
  Host host;
  std::optional<int> slots;  ///< processes on this host, from `slots=N` or `max_slots = N`
};

/// Reads a hostfile, `-` from standard input. Throws std::invalid_argument with `file:line:` and
/// the fault: an unreadable file, no host in it, a malformed host, an unknown key, slots that are
/// not a positive number, a host named twice.
std::vector<HostfileEntry> read_hostfile(const std::filesystem::path& file);

}  // namespace dtool::ssh
