// SPDX-License-Identifier: MIT
// One session that a keeper offers to commands, one command at a time: its socket, the conversation
// with each command that connects, and its end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "ssh/config/client_config.h"
#include "ssh/host.h"
#include "ssh/kept/kept_connection.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/keys/known_hosts.h"
#include "ssh/machine/reactor.h"
#include "ssh/session/ssh_connection.h"

namespace dtool::ssh {

/// A session to be kept.
struct KeptSession {
  Host host;
  Endpoint endpoint;
  std::string key;  ///< connection_key at login
  std::unique_ptr<SshConnection> connection;
  std::vector<Session*> jumps;  ///< the sessions to its jump hosts, which the reactor keeps going
};

class OfferedSession {
 public:
  /// `listener` is the socket `name` of the folder; commands that want the session connect to it.
  OfferedSession(Reactor& reactor, const KeptFolder& folder, KnownHosts& known_hosts,
                 KeptSession session, std::string name, OwnedFd listener,
                 std::chrono::seconds idle);

  /// Returns when the session is over and nothing of it runs any more.
  asio::awaitable<void> serve();

  /// Ends the session soon if it has been idle for too long.
  void look_at_time();
  /// Ends the session as soon as it is free, if its socket was removed or replaced: no command can
  /// find it any more.
  void look_at_socket();

  /// Removes its socket and ends all that runs for it.
  void end();

 private:
  class AtWork;

  asio::awaitable<void> listen_to_server(std::size_t quiet_time);
  asio::awaitable<void> open_door();
  asio::awaitable<void> converse(OwnedFd caller);
  asio::awaitable<bool> take(std::string key);
  asio::awaitable<void> execute(int caller, Message order);
  asio::awaitable<void> watch_caller(int caller, Waiter& waiter, const bool& is_done);
  void describe(int caller) const;
  void release();

  Reactor& reactor_;
  const KeptFolder& folder_;
  KnownHosts& known_hosts_;
  KeptSession session_;
  std::string name_;
  ino_t inode_;
  OwnedFd listener_;
  Waiter door_;
  TaskGroup tasks_;
  std::unordered_set<int> callers_;  ///< sockets of all connected commands
  std::chrono::seconds idle_;
  std::chrono::seconds idle_since_;
  std::size_t quiet_time_ = 0;  ///< number of the current pause between two uses; each has its own
                                ///< listener
  bool is_taken_ = false;
  bool ends_when_free_ = false;
  bool is_over_ = false;
};

}  // namespace dtool::ssh
