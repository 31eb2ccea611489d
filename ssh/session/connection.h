// SPDX-License-Identifier: MIT
// A way to run commands on one host, whether over SSH or on this machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ssh/machine/reactor.h"
#include "ssh/remote.h"
#include "ssh/session/session.h"

namespace dtool::ssh {

/// What to do with the output of a login shell before the command: a ~/.bashrc's greeting.
enum class ShellOutput { hand_on, leave_out };

/// Where a command's input comes from and its output goes: memory and a callback, or descriptors of
/// this process (non-blocking; two numbers, even for one socket; owned by the caller).
struct CommandStreams {
  std::string input = {};  ///< used if input_fd is -1
  int input_fd = -1;
  /// Optional: called once input_fd is used by other processes alone, so that it can be closed here
  /// and its writer sees when they have closed it.
  std::function<void()> on_input_taken = {};
  /// The callback for a stream whose descriptor below is -1.
  std::function<void(Stream, std::string_view)> on_output = {};
  int output_fd = -1;
  int error_fd = -1;
  /// The treatment of a login shell's output on standard output.
  ShellOutput shell_output = ShellOutput::hand_on;
};

/// A server with MaxSessions 1 counts a session until it has seen the end of its channel, which may
/// be later than the next request: for so long a refused session is asked for again.
inline constexpr auto kForEndOfLastSession = std::chrono::seconds(3);

/// Runs commands on one host, one at a time.
struct Connection {
  virtual ~Connection() = default;

  /// Runs `line` in the login shell; returns its exit code, 128 + signal if a signal ended it.
  /// Throws HostError: timed_out (the command was told to end) or connection_lost.
  virtual asio::awaitable<int> execute(std::string line, CommandStreams streams,
                                       Deadline deadline) = 0;

  /// Ends execute() as if the connection were lost; no other one can succeed.
  virtual void abandon() = 0;

  /// Ends execute() as if its deadline had passed.
  virtual void expire() = 0;

  /// Whether another execute() can succeed.
  virtual bool is_usable() const = 0;

  /// The key that the host's server showed, `ssh-ed25519 SHA256:…`; empty if unknown.
  virtual std::string host_key() const { return {}; }
};

}  // namespace dtool::ssh
