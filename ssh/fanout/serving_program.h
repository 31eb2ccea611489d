// SPDX-License-Identifier: MIT
// dtool-host as it serves over one connection: it is started for the first command's requests, and
// takes those of the next commands too, so that they need no log-in shell of their own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ssh/fanout/host_program.h"
#include "ssh/session/connection.h"

namespace dtool::ssh {

/// One command's requests for dtool-host.
struct HostRequests {
  /// Writes their frames to a non-blocking pipe; called anew for each try. Whether it wrote all.
  std::function<asio::awaitable<bool>(int pipe)> write;
  std::function<void(Stream, std::string_view)> on_output;  ///< takes the replies
  bool are_followed = false;  ///< another command follows, for which the program waits
};

class ServingProgram {
 public:
  ServingProgram(Reactor& reactor, Connection& connection);

  /// Has the requests answered, by the program that waits or by one that it starts, and installs
  /// it first if it is missing. A program that ends before it speaks may be damaged: if it is, it
  /// is brought again. One that is started and does not speak fails, and the connection with it.
  /// Returns the exit code. `log_in_said` takes what the log-in printed before the program spoke.
  /// Throws HostError as Connection::execute does.
  asio::awaitable<int> answer(HostRequests requests, std::string& log_in_said, Deadline deadline);

  /// Whether the program runs. The connection is busy with it until end().
  bool is_running() const;
  /// Whether that one takes no further requests: end() comes first.
  bool is_ending() const;
  /// Whether answer() threw although the program had been lost before it could hear the requests:
  /// they may be asked again over a new connection.
  bool was_lost_before() const { return was_lost_before_; }

  /// Tells a program that waits to end, and waits for that. A program that does not end in time
  /// loses the connection.
  asio::awaitable<void> end();

 private:
  struct Started;

  void start(Damaged damaged);
  asio::awaitable<void> run(std::shared_ptr<Started> started, std::string line);
  asio::awaitable<std::optional<int>> answer_by_waiting(const HostRequests& requests,
                                                        Deadline deadline);
  asio::awaitable<int> take_turn(const HostRequests& requests, Deadline deadline);
  asio::awaitable<void> write(std::shared_ptr<Started> started, const HostRequests& requests);
  asio::awaitable<void> await_end_of_turn(Started& started, Deadline deadline);

  Reactor& reactor_;
  Connection& connection_;
  std::shared_ptr<Started> started_;
  bool was_lost_before_ = false;
};

}  // namespace dtool::ssh
