// SPDX-License-Identifier: MIT
// A second terminal between this machine's own and the command that has it, so that a Ctrl-c typed
// by habit does not interrupt a run: the first one shows what another would do, the second passes.
#pragma once

#include <string>

#include "ssh/fanout/terminal_link.h"
#include "ssh/machine/files.h"
#include "ssh/machine/reactor.h"

namespace dtool::ssh {

class TerminalRelay {
 public:
  /// `outer` is in raw mode and outlives this. Throws HostError(local_program) if this machine has
  /// no terminal left.
  TerminalRelay(Reactor& reactor, const Terminal& outer);
  TerminalRelay(const TerminalRelay&) = delete;
  TerminalRelay& operator=(const TerminalRelay&) = delete;

  /// For the command; both descriptors are non-blocking.
  Terminal inner() const;

  /// Gives the inner terminal the outer one's size.
  void resize();

  /// Passes keys on until stop(), or until the outer terminal is closed.
  asio::awaitable<void> pass_keys();
  /// Passes output on until stop(), and then what is left of it.
  asio::awaitable<void> pass_output();
  void stop();

 private:
  void take_interrupts(std::string& keys);
  std::string notice() const;

  Reactor& reactor_;
  Terminal outer_;
  OwnedFd keys_;    ///< the descriptor where the inner terminal takes its keys
  OwnedFd output_;  ///< the descriptor where the inner terminal gives its output
  OwnedFd inner_in_;
  OwnedFd inner_out_;
  Waiter key_waiter_;
  Waiter output_waiter_;
  Deadline passes_until_{};  ///< a Ctrl-c passes until then
  Deadline shown_until_{};   ///< the notice is drawn again after output until then
  bool has_output_ = false;
  bool is_to_be_drawn_ = false;
  bool is_over_ = false;
};

}  // namespace dtool::ssh
