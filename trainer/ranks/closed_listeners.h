// Closes the ports of libraries that listen for as long as they live, though nobody is to come any
// more.
#pragma once

#include <set>

namespace dtool::trainer {

/// The sockets of this process that listen for TCP connections, by descriptor.
std::set<int> listening_sockets();

/// From here on the kernel drops whatever comes to the listening socket from outside; connections
/// that were made stay. Closing it would be the library's to do.
void take_no_more(int listening_socket);

}  // namespace dtool::trainer
