// SPDX-License-Identifier: MIT
// Turns requests to dtool-host (ssh/wire/protocol.h), dtool's program on the hosts, into commands
// for a Remote, and reads the replies from its results.
#pragma once

#include "ssh/remote.h"
#include "ssh/wire/frames.h"

namespace dtool::ssh {

/// A command that makes dtool-host answer `request`. The result's `out` holds the frames of the
/// reply.
template <typename Request>
Command ask_host(const Request& request) {
  Command command;
  command.input = host::to_frame(request);
  command.run_by = RunBy::host_program;
  return command;
}

/// Whether a word of a host's may be an address: IPv4, IPv6 with its zone, or a name.
bool is_address(std::string_view text);

/// One frame of a result's output; the first is number 0. If there is no such frame, throws
/// host::BadMessage with the host's words.
host::Frame read_frame(const HostResult& result, std::size_t number = 0);

/// The one reply in a result. If there is none, throws host::BadMessage with the reason in one
/// sentence.
template <typename Reply>
Reply read_reply(const HostResult& result) {
  return host::open<Reply>(read_frame(result));
}

}  // namespace dtool::ssh
