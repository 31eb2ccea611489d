// SPDX-License-Identifier: MIT
// Opens sessions: configuration, socket (through jump hosts if the configuration says so),
// greeting, keys, login.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/config/client_config.h"
#include "ssh/connect_options.h"
#include "ssh/host.h"
#include "ssh/host_error.h"
#include "ssh/keys/identity.h"
#include "ssh/keys/known_hosts.h"
#include "ssh/machine/reactor.h"
#include "ssh/session/exchange.h"
#include "ssh/session/session.h"

namespace dtool::ssh {

/// The pause before try `next` (2, 3, …) of a server that hung up: 0.1, 0.2, 0.4 … 3.2 s.
std::chrono::milliseconds usual_pause_before(int next);

class Connector {
 public:
  /// Throws std::invalid_argument if the SSH configuration cannot be read.
  Connector(Reactor& reactor, const ConnectOptions& options);

  /// A session whose server is known and has accepted the login. Throws HostError.
  asio::awaitable<std::unique_ptr<Session>> log_in(Host host);

  /// The address that the configuration gives for that host.
  std::string address_of(const Host& host) const;

  const ClientConfig& config() const { return config_; }

  /// The sessions that carry a connection with these jumps, nearest first.
  std::vector<Session*> jump_sessions(const std::vector<std::string>& jumps) const;

  /// A session after the key exchange; the server's key is not checked and no login was tried.
  asio::awaitable<std::unique_ptr<Session>> greet(Host host);

  /// The known_hosts files by which hosts are known here.
  KnownHosts& known_hosts() { return known_hosts_; }

 private:
  /// A jump host: one session for all hosts behind it.
  struct Jump {
    explicit Jump(Reactor& reactor) : is_decided(reactor.context()) {}
    /// Whether to connect again: the session was lost, or a try to replace a lost one failed. If
    /// the very first try failed, its error is the answer for all hosts behind the jump.
    bool is_lost() const {
      return session != nullptr ? !session->is_connected() : error && is_again;
    }

    std::unique_ptr<Session> session;
    std::exception_ptr error;
    asio::steady_timer is_decided;  ///< cancelled when there is a session or an error
    bool is_again = false;          ///< the jump is made again after an earlier session was lost
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
  /// The jumps by the chain that leads to each.
  std::map<std::string, std::unique_ptr<Jump>> jumps_;
  std::vector<std::unique_ptr<Jump>> lost_jumps_;  ///< their connections may not have ended yet
};

/// Has the server connect an exchange's channel to that place. `who`: the server's host, for the
/// messages. Throws HostError.
asio::awaitable<void> open_forward(Session& session, Exchange& exchange, std::string who,
                                   std::string address, std::uint16_t port, Deadline deadline);

// From a name to a connected socket whose server has sent its greeting, with a deadline and without
// blocking.

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
