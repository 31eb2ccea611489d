// Opens sessions: configuration, socket (through jump hosts where the configuration says so),
// greeting, keys, log-in.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/config/client_config.h"
#include "ssh/fleet.h"
#include "ssh/host.h"
#include "ssh/keys/identity.h"
#include "ssh/keys/known_hosts.h"
#include "ssh/machine/reactor.h"
#include "ssh/session/exchange.h"
#include "ssh/session/session.h"

namespace dtool::ssh {

class Connector {
 public:
  /// Throws std::invalid_argument if the SSH configuration cannot be read.
  Connector(Reactor& reactor, const ConnectOptions& options);

  /// A session whose server is known and has let us in. Throws HostError.
  asio::awaitable<std::unique_ptr<Session>> log_in(Host host);

  /// Where the configuration sends dtool for that host.
  std::string address_of(const Host& host) const;

  const ClientConfig& config() const { return config_; }

  /// The sessions that carry the connection to a host with these jumps, the nearest first.
  std::vector<Session*> jump_sessions(const std::vector<std::string>& jumps) const;

  /// A session whose keys are exchanged and whose server is neither known nor asked to let us in.
  asio::awaitable<std::unique_ptr<Session>> greet(Host host);

  /// The known_hosts files by which hosts are known here.
  KnownHosts& known_hosts() { return known_hosts_; }

 private:
  /// A host that others are reached through: one session for all of them.
  struct Jump {
    explicit Jump(Reactor& reactor) : is_decided(reactor.context()) {}
    /// Whether to reach it anew. One that was never reached has failed for all hosts behind it.
    bool is_lost() const {
      return session != nullptr ? !session->is_connected() : error && is_again;
    }

    std::unique_ptr<Session> session;
    std::exception_ptr error;
    asio::steady_timer is_decided;  ///< cancelled when there is a session or an error
    bool is_again = false;          ///< an earlier session to it was lost
  };

  asio::awaitable<std::unique_ptr<Session>> greet(Endpoint endpoint,
                                                  std::vector<std::string> jumps);
  asio::awaitable<OwnedFd> open_socket(Endpoint endpoint, std::vector<std::string> jumps,
                                       Deadline deadline);
  asio::awaitable<OwnedFd> open_through(std::vector<std::string> jumps, Endpoint target,
                                        Deadline deadline);
  asio::awaitable<Jump*> reach_jump(std::vector<std::string> jumps);
  asio::awaitable<void> log_in_to_jump(Jump& jump, std::vector<std::string> jumps);
  asio::awaitable<std::unique_ptr<Session>> log_in(Endpoint endpoint,
                                                   std::vector<std::string> jumps);
  Deadline connect_deadline(const Endpoint& endpoint) const;

  Reactor& reactor_;
  std::chrono::milliseconds connect_timeout_;
  std::optional<std::chrono::milliseconds> forced_connect_timeout_;
  int tries_;
  ClientConfig config_;
  IdentityCache identities_;
  KnownHosts known_hosts_;
  std::map<std::string, std::unique_ptr<Jump>> jumps_;  ///< by the chain that leads to it
  std::vector<std::unique_ptr<Jump>> lost_jumps_;       ///< what they carried may not have ended
};

}  // namespace dtool::ssh
