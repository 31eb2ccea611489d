// From a name to a connected socket whose server has greeted, within a deadline and without
// blocking.
#pragma once

#include <cstdint>
#include <string>

#include "ssh/machine/reactor.h"

namespace dtool::ssh {

/// Resolves `address` and connects, trying each address in turn. The socket is non-blocking,
/// close-on-exec, without Nagle's delay, and notices a peer that vanished within half a minute.
/// Throws HostError: unreachable or connect_timed_out.
asio::awaitable<OwnedFd> connect_tcp(Reactor& reactor, std::string address, std::uint16_t port,
                                     Deadline deadline);

enum class Greeting { came, dropped };

/// Waits until the server has sent the beginning of its SSH greeting, and leaves it unread.
/// `dropped`: the connection ended before, as a server beyond its MaxStartups does. Throws
/// HostError on a deadline, or where what came is no SSH greeting.
asio::awaitable<Greeting> await_greeting(Reactor& reactor, int fd, Deadline deadline);

}  // namespace dtool::ssh
