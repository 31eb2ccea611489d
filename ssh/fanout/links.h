// SPDX-License-Identifier: MIT
// A fleet's connections. Each is opened for a host's first task, or taken from a keeper; at the end
// it may be left to a keeper.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/fanout/serving_program.h"
#include "ssh/kept/keeper.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/program/masters.h"
#include "ssh/session/connection.h"
#include "ssh/session/connector.h"

namespace dtool::ssh {

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
  void interrupt() { masters_.interrupt(); }
  /// Leaves the connections over `ssh` open for later commands, if connections are kept.
  void leave_masters() { masters_.leave_to_later(); }

  /// The address that the configuration gives for that host.
  std::string address_of(const Host& host) const { return connector_.address_of(host); }

 private:
  /// A host's connection, and what serves there; in this order, since a program uses its
  /// connection.
  struct Link {
    std::unique_ptr<Connection> connection;
    std::unique_ptr<ServingProgram> program;
  };

  friend bool leave_to_keeper(std::unique_ptr<HostLinks>& links) noexcept;
  asio::awaitable<std::unique_ptr<Connection>> open(std::size_t host);
  asio::awaitable<std::unique_ptr<Connection>> log_in(std::size_t host);
  std::vector<KeptSession> sessions_to_keep();

  Reactor reactor_;
  Connector connector_;
  Program program_;
  Masters masters_;
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

/// A connection to this machine, which runs commands as an SSH server would: for `local`.
std::unique_ptr<Connection> make_local_connection(Reactor& reactor);

}  // namespace dtool::ssh
