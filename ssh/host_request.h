// Requests to dtool-host, dtool's own program on the hosts (ssh/host/protocol.h), as commands for a
// Remote, and the replies in its results.
#pragma once

#include <optional>
#include <string>
#include <utility>

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

/// The one reply in a result. Throws host::BadMessage with why there is none: what the host said
/// instead, in one sentence.
template <typename Reply>
Reply read_reply(const HostResult& result) {
  host::FrameReader reader;
  reader.add(result.out);
  const auto frame = reader.next();
  if (!frame)
    throw host::BadMessage("the answer is not whole (exit code " +
                           std::to_string(result.exit_code) + "): " + result.err);
  return host::open<Reply>(*frame);
}

}  // namespace dtool::ssh
