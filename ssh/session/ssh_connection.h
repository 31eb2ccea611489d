// SPDX-License-Identifier: MIT
// Commands over one SSH session, each on its own channel. The fleet makes it after a login; a
// keeper goes on with it for later commands.
#pragma once

#include <memory>
#include <string>

#include "ssh/session/connection.h"
#include "ssh/session/exchange.h"
#include "ssh/session/session.h"

namespace dtool::ssh {

class SshConnection : public Connection {
 public:
  SshConnection(Reactor& reactor, std::unique_ptr<Session> session);

  asio::awaitable<int> execute(std::string line, CommandStreams streams,
                               Deadline deadline) override;
  void abandon() override;
  void expire() override;
  bool is_usable() const override { return session_->is_connected(); }
  std::string host_key() const override { return session_->host_key(); }

  /// Opens the channel for the next execute(), which proves that the server still answers. Throws
  /// HostError: timed_out, or connection_lost if the server refuses.
  asio::awaitable<void> open_ahead(Deadline deadline);
  /// Closes that channel if no execute() has used it.
  void close_unused() { ahead_.reset(); }

  Session& session() { return *session_; }

 private:
  asio::awaitable<std::unique_ptr<Channel>> open(Deadline deadline);
  asio::awaitable<void> start(ssh_channel channel, std::string line, Deadline deadline);
  asio::awaitable<void> end_command(Exchange& exchange);

  Reactor& reactor_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Channel> ahead_;  // it stands after session_: a channel goes before its session
  Exchange* running_ = nullptr;     ///< the command's that runs
};

}  // namespace dtool::ssh
