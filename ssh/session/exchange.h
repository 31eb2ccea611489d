// SPDX-License-Identifier: MIT
// The traffic of one open SSH channel: input to the server and output from it, until its end.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "ssh/host_error.h"
#include "ssh/keys/libssh.h"
#include "ssh/machine/reactor.h"
#include "ssh/session/connection.h"
#include "ssh/session/session.h"

namespace dtool::ssh {

// Separates the output of a login shell (a ~/.bashrc's greeting) from the command's own, for
// streams that it would corrupt, such as rsync's.

/// `line` for any login shell, preceded by a mark that shows where the command's output begins.
std::string behind_mark(std::string_view line);

/// Removes everything up to and including the mark from the output of a behind_mark() line.
class LoginOutput {
 public:
  /// The part of `bytes` that is the command's; valid until the next call.
  std::string_view commands_part(std::string_view bytes);

 private:
  bool has_begun_ = false;
  std::string held_;  ///< its end may be the beginning of the mark
};

/// One channel and how its command ended. Not movable: libssh keeps a pointer to it.
class Channel {
 public:
  explicit Channel(Session& session);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  ssh_channel handle() const { return handle_.get(); }
  /// 128 + signal if a signal ended the command; -1 until the server has reported it.
  int exit_code() const { return exit_code_; }

 private:
  ChannelHandle handle_;
  ssh_channel_callbacks_struct callbacks_{};
  int exit_code_ = -1;
};

/// When an exchange is complete: a command has an exit code, a forwarded connection has not.
enum class EndsWith { exit_code, end_of_output };

class Exchange {
 public:
  Exchange(Reactor& reactor, Session& session, CommandStreams streams, EndsWith ends_with,
           Deadline deadline);
  /// Uses an open channel of that session.
  Exchange(Reactor& reactor, Session& session, std::unique_ptr<Channel> channel,
           CommandStreams streams, EndsWith ends_with, Deadline deadline);

  Channel& channel() { return *channel_; }

  /// Sends all input and passes on all output. Throws HostError: connection_lost, or timed_out
  /// while the command still runs.
  asio::awaitable<void> run();

  /// Asks the server to send the command a signal (`TERM`). OpenSSH ignores this if the user is
  /// root.
  void signal(const char* name);
  /// Has run() throw timed_out, if the command still runs.
  void expire();
  /// After run() threw timed_out: passes on the output that still comes.
  asio::awaitable<void> take_last_words(Deadline deadline);

 private:
  asio::awaitable<void> send(std::string_view bytes);
  asio::awaitable<void> send_input();
  asio::awaitable<void> send_from_fd();
  asio::awaitable<std::size_t> drain(Stream stream);
  int output_fd(Stream stream) const;
  asio::awaitable<void> receive();
  void take_in_packets();
  void stop_sending();

  Reactor& reactor_;
  Session& session_;
  std::unique_ptr<Channel> channel_;
  CommandStreams streams_;
  LoginOutput login_output_;
  EndsWith ends_with_;
  Deadline deadline_;
  bool is_over_ = false;            ///< no more input has to be sent
  Waiter* input_waiter_ = nullptr;  ///< the waiter of send_from_fd while that runs
  std::size_t sent_at_once_ = 0;    ///< the bytes sent without a turn for other coroutines
};

/// The error for a connection that was lost, with libssh's reason.
HostError connection_lost(const Session& session);

}  // namespace dtool::ssh
