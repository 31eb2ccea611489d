// Requests to dtool-host, dtool's own program on the hosts (ssh/host/protocol.h), as commands for a
// Remote, and the replies in its results.
#pragma once

#include "ssh/host/frames.h"
#include "ssh/remote.h"

namespace dtool::ssh {

/// A command that has dtool-host answer `request`. The result's `out` are the frames of the reply.
template <typename Request>
Command ask_host(const Request& request) {
  Command command;
  command.input = host::to_frame(request);
  command.run_by = RunBy::host_program;
  return command;
}

/// The first frame in a result's output. Throws host::BadMessage with what the host said instead.
host::Frame read_frame(const HostResult& result);

/// The one reply in a result. Throws host::BadMessage with why there is none, in one sentence.
template <typename Reply>
Reply read_reply(const HostResult& result) {
  return host::open<Reply>(read_frame(result));
}

}  // namespace dtool::ssh
