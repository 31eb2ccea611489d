// SPDX-License-Identifier: MIT
// The connections of commands. A fleet's are opened for a host's first task, or taken from a
// keeper; at the end they may be left to a keeper. Others have one, which lasts.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/connect_options.h"
#include "ssh/fanout/serving_program.h"
#include "ssh/host.h"
#include "ssh/kept/keeper.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/machine/interrupt_listener.h"
#include "ssh/machine/reactor.h"
#include "ssh/program/masters.h"
#include "ssh/program/program_choice.h"
#include "ssh/remote.h"
#include "ssh/session/connection.h"

namespace dtool::ssh {

/// The connections of a fleet.
class HostLinks {
 public:
  /// Opens no connection yet. Throws std::invalid_argument if the SSH configuration cannot be read.
  HostLinks(const std::vector<Host>& hosts, const ConnectOptions& options);

  Reactor& reactor() { return reactor_; }

  /// The connection to a host: the open one, a kept one, or a new one. It is valid until drop() or
  /// the next connect(). Throws HostError.
  asio::awaitable<Connection*> connect(std::size_t host);
  /// dtool-host over that connection.
  ServingProgram& program(std::size_t host);
  /// Ends the program that waits there, so that the connection can be used for something else.
  asio::awaitable<void> end_program(std::size_t host);
  /// The same on all hosts; runs the event loop.
  void end_programs();
  /// Closes it.
  void drop(std::size_t host);

  /// From now on no connection is opened over `ssh`, and the user is asked nothing.
  void interrupt() { dialer_.masters().interrupt(); }
  /// Leaves the connections over `ssh` open for later commands, if connections are kept.
  void leave_masters() { dialer_.masters().leave_to_later(); }

  /// The address that the configuration gives for that host.
  std::string address_of(const Host& host) const { return dialer_.connector().address_of(host); }

 private:
  /// A host's connection, and what serves there; in this order, since a program uses its
  /// connection.
  struct Link {
    std::unique_ptr<Connection> connection;
    std::unique_ptr<ServingProgram> program;
  };

  friend bool leave_to_keeper(std::unique_ptr<HostLinks>& links) noexcept;
  asio::awaitable<std::unique_ptr<Connection>> open(std::size_t host);
  std::vector<KeptSession> sessions_to_keep();

  Reactor reactor_;
  Dialer dialer_;
  std::chrono::seconds keep_;
  std::optional<KeptFolder> kept_folder_;  ///< set if there may be kept connections
  std::vector<Host> hosts_;
  std::vector<std::string> keys_;  ///< connection_key of each host, if connections are kept
  std::vector<Link> links_;
  std::vector<Link> dropped_;  ///< the dropped links with programs that had not ended
};

/// Hands the connections that this process has opened to a keeper, if they are to be kept. Returns
/// whether there is a keeper; then `links` is null. Closing a session here would send bytes into
/// the middle of the keeper's stream. So this process does nothing more with the sessions, and
/// their memory stays until it ends.
bool leave_to_keeper(std::unique_ptr<HostLinks>& links) noexcept;

/// The connection to one host outside a fleet, with an event loop of its own, for what lasts: a
/// terminal (terminal_link.h) and forwarded ports (port_forward.h).
class SingleLink {
 public:
  /// Opens no connection yet. SIGINT, SIGTERM and SIGHUP abandon the event loop.
  SingleLink(Host host, const ConnectOptions& options);
  ~SingleLink();

  Reactor& reactor() { return reactor_; }
  const Host& host() const { return host_; }
  /// Whether one of the signals came.
  bool interrupted() const { return is_interrupted_; }

  /// Runs the event loop until `task` has ended. `result` belongs to the caller, since the task may
  /// fill it; it gets the HostError that the task threw.
  HostResult finish(asio::awaitable<void> task, HostResult& result);

  /// The open connection, or a new one. One caller at a time. Throws HostError.
  asio::awaitable<Connection*> connect();
  /// The latest connection's session; null: it has none in this process.
  Session* session() const { return session_; }
  /// Whether the connection, which is open, is over the `ssh` program.
  bool is_over_program() const { return session_ == nullptr && !host_.is_local; }
  const Masters& masters() const { return dialer_.masters(); }

 private:
  void on_asked();

  Reactor reactor_;
  Host host_;
  Dialer dialer_;
  Interrupts endings_;
  bool is_interrupted_ = false;
  Session* session_ = nullptr;
  std::unique_ptr<Connection> connection_;
  std::vector<std::unique_ptr<Connection>> lost_;  ///< something may still wait for them
};

/// A connection to this machine, which runs commands as an SSH server would: for `local`.
std::unique_ptr<Connection> make_local_connection(Reactor& reactor);

}  // namespace dtool::ssh
