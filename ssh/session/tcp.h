// SPDX-License-Identifier: MIT
// From a name to a connected socket whose server has sent its greeting, with a deadline and without
// blocking.
#pragma once

#include <cstdint>
#include <string>

#include "ssh/config/client_config.h"
#include "ssh/host_error.h"
#include "ssh/machine/reactor.h"

namespace dtool::ssh {

/// Resolves `address`, to addresses of that family, and tries each in turn. The socket is
/// non-blocking, close-on-exec, without Nagle's delay, and notices a vanished peer within half a
/// minute. Throws HostError: unreachable or connect_timed_out.
asio::awaitable<OwnedFd> connect_tcp(Reactor& reactor, std::string address, std::uint16_t port,
                                     Deadline deadline, AddressFamily family = AddressFamily::any);

/// The error for a connection to that port that failed with `error`, an errno value. It names no
/// address: the same error of many hosts is shown once.
HostError connect_error(std::uint16_t port, int error);

enum class Greeting { came, dropped };

/// Waits until the server has sent the beginning of its SSH greeting, and leaves it unread.
/// `dropped`: the connection ended first, as with a server beyond its MaxStartups. Throws HostError
/// on a deadline, or if the bytes are not an SSH greeting.
asio::awaitable<Greeting> await_greeting(Reactor& reactor, int fd, Deadline deadline);

}  // namespace dtool::ssh
