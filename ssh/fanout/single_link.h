// SPDX-License-Identifier: MIT
// The connection to one host outside a fleet, with an event loop of its own, for what lasts: a
// terminal (terminal_link.h) and forwarded ports (port_forward.h).
#pragma once

#include <memory>
#include <vector>

#include "ssh/config/client_config.h"
#include "ssh/connect_options.h"
#include "ssh/host.h"
#include "ssh/machine/interrupt_listener.h"
#include "ssh/machine/reactor.h"
#include "ssh/program/masters.h"
#include "ssh/program/program_choice.h"
#include "ssh/remote.h"
#include "ssh/session/connection.h"
#include "ssh/session/connector.h"

namespace dtool::ssh {

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
  /// Whether the latest connection is over the `ssh` program.
  bool is_over_program() const { return has_master_; }
  const Masters& masters() const { return masters_; }

 private:
  void on_asked();

  Reactor reactor_;
  Host host_;
  Connector connector_;
  Program program_;
  Masters masters_;
  Interrupts endings_;
  bool has_master_ = false;
  bool is_interrupted_ = false;
  Session* session_ = nullptr;
  std::unique_ptr<Connection> connection_;
  std::vector<std::unique_ptr<Connection>> lost_;  ///< something may still wait for them
};

}  // namespace dtool::ssh
