// SPDX-License-Identifier: MIT
// The flags that choose the hosts and how to reach them, shared by all commands that reach hosts.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/settings.h"
#include "killfiles/killfile.h"
#include "ssh/connect_options.h"
#include "ssh/host.h"

namespace dtool::cli {

class Options;

/// As typed.
struct HostOptions {
  std::string runs_on;
  std::string hostfile;
  std::string exclude_hosts;   ///< hosts of those that are left out
  std::size_t pick = 0;        ///< how many of those are taken, by chance; 0: all
  double connect_timeout = 0;  ///< seconds; 0: from the settings, else ConnectOptions' default
  /// The hosts served at once; 0: from the settings, else ConnectOptions' default.
  std::size_t width = 0;
  std::string ssh_cmd;
  std::string ssh_program;  ///< auto, libssh or ssh; empty: from the settings
  std::string ask;          ///< each or once; likewise
  std::string trace;        ///< a folder; empty: none
};

/// Hosts and how to reach them.
struct Targets {
  std::vector<ssh::Host> hosts;
  std::vector<std::optional<int>> slots;  ///< one for each host; from a hostfile
  ssh::ConnectOptions connect;
};

void add_host_options(Options& command, HostOptions& options);
/// The flags that name no hosts, for commands that act on recorded hosts.
void add_connect_options(Options& command, HostOptions& options);

/// How many of the hosts are taken.
void add_pick_option(Options& command, std::size_t& count);
/// That many of the hosts by chance, in their order. Throws std::invalid_argument if they are
/// fewer.
void pick_hosts(std::size_t count, Targets& targets);

/// Finds the groups of the settings.
ssh::GroupLookup group_lookup(const Settings& settings);

/// Hosts from the flags, else from the settings' runs_on; nothing if neither names any. Throws
/// std::invalid_argument on unreadable hosts, if both flags are given, and if a host that is to be
/// left out was not named.
std::optional<Targets> choose_targets(const HostOptions& options, const Settings& settings);

/// The hosts of a recorded run, reached as at its start. The settings of the current folder are
/// ignored, and so are SSH settings of the killfile that decide about trust or run something here,
/// unless a run of this user's had them on this machine: the killfile may be somebody else's.
Targets recorded_targets(const killfiles::Killfile& killfile, const HostOptions& options,
                         const UserSettings& users);

/// Writes into the killfile how its hosts are reached, for recorded_targets(), and remembers that
/// the user chose it. Throws std::system_error.
void write_connection(const ssh::ConnectOptions& connect, killfiles::Killfile& killfile);

/// `--ssh_cmd` in AllenAct's form, `ssh -i KEY -p 2222 user@{addr}`. Understands -i, -p, -l, -F,
/// -J, -o and `user@{addr}`. Throws std::invalid_argument naming anything else.
struct SshCommand {
  std::optional<std::string> config_file;
  std::vector<std::pair<std::string, std::string>> settings;
};
SshCommand parse_ssh_cmd(const std::string& text);

}  // namespace dtool::cli
