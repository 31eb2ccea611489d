// SPDX-License-Identifier: MIT
// The user's ssh-agent (draft-miller-ssh-agent), spoken to in the event loop. The agent may wait
// for its user (ssh-add -c, a key that wants a touch), or be at the far end of a stalled
// connection. libssh would block the whole process meanwhile.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ssh/machine/reactor.h"

namespace dtool::ssh {

class Session;

/// Which of the agent's keys to offer. A key is the base64 of its public part, as in a .pub file.
struct AgentOffer {
  std::optional<std::set<std::string>> only = {};  ///< set with IdentitiesOnly
  std::set<std::string> tried = {};                ///< keys that the server has refused already
};

/// The result.
struct AgentLogIn {
  bool is_in = false;
  std::string problem;  ///< the trouble with the agent; empty if nothing went wrong
  Deadline deadline;    ///< moved by the time that a signature took
};

/// So long is a person waited for, who may have a prompt for each host: as long as sshd lets one
/// log in (LoginGraceTime).
inline constexpr auto kAgentPatience = std::chrono::seconds(120);

/// How long one question to the agent is waited for, and when the user is told so.
class AgentPatience {
 public:
  enum class Next { wait, tell, give_up };
  /// What all questions share.
  struct Times {
    Clock::time_point answered;  ///< the agent's last answer
    Clock::time_point told;      ///< the last line to the user
  };

  explicit AgentPatience(Times& all) : all_(all) {}

  void asked(Clock::time_point now) { asked_ = now; }
  void answered(Clock::time_point now) { all_.answered = now; }

  /// What to do while there is no answer. Patience is counted anew whenever the agent has answered
  /// anybody.
  Next next(Clock::time_point now);
  /// When to ask next() again.
  Clock::time_point next_look(Clock::time_point now) const;

 private:
  Times& all_;
  Clock::time_point asked_;
};

/// Offers the keys of the agent at the socket `path` to the server of `session`, one after another.
/// A server that ends the login leaves the session disconnected. Throws HostError(timed_out) if the
/// server does not answer before `deadline`.
asio::awaitable<AgentLogIn> log_in_with_agent(Reactor& reactor, Session& session, std::string path,
                                              AgentOffer offer, Deadline deadline);

}  // namespace dtool::ssh
