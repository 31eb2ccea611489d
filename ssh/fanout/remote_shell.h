// SPDX-License-Identifier: MIT
// Runs a program on this machine whose remote shell is one of dtool's own connections. rsync starts
// `dtool remote_shell HOST COMMAND…`. That process hands its standard streams to the dtool that
// started rsync, over an inherited socket, and waits for the exit code.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "ssh/machine/encodings.h"
#include "ssh/machine/owned_fd.h"
#include "ssh/machine/reactor.h"
#include "ssh/remote.h"
#include "ssh/session/connection.h"

namespace dtool::ssh {

/// Runs `program` to its end. If it starts a remote shell, that runs on `connection`. The output of
/// both goes to `on_output`. Throws HostError.
asio::awaitable<int> run_local_program(Reactor& reactor, Connection& connection,
                                       LocalProgram program,
                                       std::function<void(Stream, std::string_view)> on_output,
                                       Deadline deadline);

// Bytes that this machine makes for many hosts. They are made once and kept in an unnamed file on
// disk. Each host reads them from there at its own pace.

class SharedOutput {
 public:
  /// Starts making the bytes. Throws HostError(local_program) if there is no room for a file.
  SharedOutput(Reactor& reactor, const SharedBytes& bytes);
  ~SharedOutput();
  SharedOutput(const SharedOutput&) = delete;
  SharedOutput& operator=(const SharedOutput&) = delete;

  /// Writes `before` and then the whole output into the non-blocking pipe `fd`, as the output
  /// grows; reports how much was taken. False if it stopped early: the reader has gone, `deadline`
  /// has passed, or a call failed. Throws HostError(local_program) if the output could not be made.
  asio::awaitable<bool> send(int fd, std::string_view before, Deadline deadline,
                             std::function<void(const Transferred&)> on_sent);

 private:
  void make(const std::function<void(const SharedBytes::Write&)>& maker);
  Transferred transferred(off_t at) const;
  asio::awaitable<bool> send_what_is_there(Waiter& waiter, int fd, off_t& at, Deadline deadline);
  void tell_when_made();
  void expect_success() const;

  Reactor& reactor_;
  OwnedFd file_;
  std::function<void(std::uint64_t, const std::string&)> on_whole_;  ///< nothing: has been called
  Sha256 digest_;
  std::string error_;  ///< set once it is made
  std::atomic<bool> is_made_ = false;
  std::atomic<bool> is_unwanted_ = false;
  std::thread thread_;
};

}  // namespace dtool::ssh
