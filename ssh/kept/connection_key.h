// SPDX-License-Identifier: MIT
// Everything that decides how a host is reached, as one text. Only commands with the same text
// share a connection. The fleet makes it; a keeper compares it.
#pragma once

#include <string>
#include <string_view>

#include "ssh/config/client_config.h"
#include "ssh/host.h"

namespace dtool::ssh {

/// Address, port, user, key name, known_hosts files, identities and agent of the host and of every
/// jump host. The file system's data of each identity (inode, size, times) are included, so that a
/// replaced or removed key opens no kept connection; so are this boot, network and home folder.
/// Throws std::invalid_argument as ClientConfig::resolve does.
std::string connection_key(const ClientConfig& config, const Host& host);

/// The prefix of this machine's socket names; it changes with each boot. Machines may share a home
/// folder, and a socket is useless on another machine.
std::string socket_prefix();

/// A file name for that key: the prefix and 16 digits. Different keys may get the same name.
std::string socket_name(std::string_view key);

}  // namespace dtool::ssh
