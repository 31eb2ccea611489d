// SPDX-License-Identifier: MIT
// Reads and writes descriptors of this process without blocking the event loop.
#pragma once

#include <functional>
#include <string_view>

#include "ssh/machine/reactor.h"

namespace dtool::ssh {

/// Writes all of `bytes`; false if the reader has gone.
asio::awaitable<bool> write_all(Reactor& reactor, int fd, std::string_view bytes,
                                Deadline deadline);

/// Passes on the bytes from `fd` until its end or `*deadline`. The deadline may move meanwhile; it
/// is checked five times a second.
asio::awaitable<void> read_all(Reactor& reactor, int fd,
                               std::function<void(std::string_view)> on_bytes,
                               const Deadline* deadline);

}  // namespace dtool::ssh
