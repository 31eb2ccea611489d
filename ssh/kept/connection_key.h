// All that decides how a host is reached, as one text: only commands with the same text share a
// connection. The fleet makes it; a keeper compares it.
#pragma once

#include <string>
#include <string_view>

#include "ssh/config/client_config.h"
#include "ssh/host.h"

namespace dtool::ssh {

/// Address, port, user, key name, known_hosts files, identities and agent of the host and of every
/// jump host on the way, with what the file system says of each identity (inode, size, times), so
/// that a key that was replaced or removed lets nobody in; and this boot, network and home folder.
/// Throws std::invalid_argument as ClientConfig::resolve does.
std::string connection_key(const ClientConfig& config, const Host& host);

/// What the names of this machine's sockets begin with, until it is booted again: home folders may
/// be shared by machines, and sockets mean nothing on another.
std::string socket_prefix();

/// A file name for that key: the prefix and 16 digits. Keys that differ may share it.
std::string socket_name(std::string_view key);

}  // namespace dtool::ssh
