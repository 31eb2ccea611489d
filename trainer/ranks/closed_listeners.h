// SPDX-License-Identifier: MIT
// Closes the ports of libraries that keep listening although no more connections are expected.
#pragma once

#include <set>

namespace dtool::trainer {

/// The descriptors of this process's sockets that listen for TCP connections.
std::set<int> listening_sockets();

/// From here on the kernel drops new connections to the listening socket; existing connections
/// stay. The socket itself belongs to the library, so it is not closed.
void take_no_more(int listening_socket);

}  // namespace dtool::trainer
