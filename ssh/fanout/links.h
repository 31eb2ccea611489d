// A fleet's connections: opened with a host's first task, or taken from a keeper, and left to one
// at the end.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ssh/connection.h"
#include "ssh/kept/keeper.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/program/masters.h"
#include "ssh/session/connector.h"

namespace dtool::ssh {

class Links {
 public:
  /// Reaches nobody yet. Throws std::invalid_argument if the SSH configuration cannot be read.
  Links(const std::vector<Host>& hosts, const ConnectOptions& options);

  Reactor& reactor() { return reactor_; }

  /// The connection to a host: the one that is open, one that is kept, or a new one; good until it
  /// is dropped or connect() is called again. Throws HostError.
  asio::awaitable<Connection*> connect(std::size_t host);
  /// Closes it.
  void drop(std::size_t host) { connections_[host].reset(); }

  /// From now on no connection is opened over `ssh`, and nobody is asked.
  void interrupt() { masters_.interrupt(); }
  /// Those over `ssh` stay for later commands, where connections are kept.
  void leave_masters() { masters_.leave_to_later(); }

  /// Where the configuration sends dtool for that host.
  std::string address_of(const Host& host) const { return connector_.address_of(host); }

 private:
  friend bool leave_to_keeper(std::unique_ptr<Links>& links) noexcept;
  asio::awaitable<std::unique_ptr<Connection>> open(std::size_t host);
  asio::awaitable<std::unique_ptr<Connection>> log_in(std::size_t host);
  std::vector<KeptSession> sessions_to_keep();

  Reactor reactor_;
  Connector connector_;
  Program program_;
  Masters masters_;
  std::chrono::seconds keep_;
  std::optional<KeptFolder> kept_folder_;  ///< where there may be kept connections
  std::vector<Host> hosts_;
  std::vector<std::string> keys_;  ///< connection_key of each host, where connections are kept
  std::vector<std::unique_ptr<Connection>> connections_;
};

/// Leaves the connections that this process has opened itself to a keeper, if they are to be kept.
/// Whether there is one; then `links` is null. What this process would still do to a session, if
/// only to close it, would be said to its host in the middle of the keeper's words: so nothing is
/// done to it any more, and the memory stays until the process ends.
bool leave_to_keeper(std::unique_ptr<Links>& links) noexcept;

}  // namespace dtool::ssh
