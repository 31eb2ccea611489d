// The user's ssh-agent (draft-miller-ssh-agent), spoken to in the event loop: it may wait for its
// user (ssh-add -c, a key that wants a touch), or be at the far end of a connection that stands
// still, and libssh would wait for it with the whole process.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ssh/machine/reactor.h"

namespace dtool::ssh {

class Session;

/// Which of its keys to offer. Keys are the base64 of their public parts, as in a .pub file.
struct AgentOffer {
  std::optional<std::set<std::string>> only = {};  ///< with IdentitiesOnly
  std::set<std::string> tried = {};                ///< the server has refused these already
};

/// How that went.
struct AgentLogIn {
  bool is_in = false;
  std::string problem;  ///< of the agent; empty if it did all that it was asked
  Deadline deadline;    ///< later by the time for which a signature was waited for
};

/// Offers the keys of the agent at the socket `path` to the server of `session`, one after another.
/// A server that ends the log-in leaves the session disconnected. Throws HostError: timed_out,
/// if the server does not answer before `deadline`.
asio::awaitable<AgentLogIn> log_in_with_agent(Reactor& reactor, Session& session, std::string path,
                                              AgentOffer offer, Deadline deadline);

}  // namespace dtool::ssh
