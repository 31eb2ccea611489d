// SPDX-License-Identifier: MIT
// One host and this machine's terminal: plain commands, and one command that has the terminal to
// itself, all over one connection. `dtool attach` uses it; everything else goes through Remote.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ssh/connect_options.h"
#include "ssh/host.h"
#include "ssh/remote.h"

namespace dtool::ssh {

/// A terminal of this machine. It has two descriptors, even of one device, both non-blocking. The
/// caller owns them and has put the terminal into raw mode.
struct Terminal {
  int in = -1;
  int out = -1;
  std::string type;               ///< the terminal's type as TERM names it
  std::string on_interrupt = {};  ///< shown at the start, and by a first Ctrl-c instead of
                                  ///< reaching the command; empty: each reaches it
};

class TerminalLink {
 public:
  /// Opens no connection yet. SIGINT, SIGTERM and SIGHUP end the running command as a lost
  /// connection would.
  TerminalLink(Host host, const ConnectOptions& options);
  ~TerminalLink();
  TerminalLink(const TerminalLink&) = delete;
  TerminalLink& operator=(const TerminalLink&) = delete;

  /// Has dtool-host answer a request (ssh/remote.h), for a minute at most.
  HostResult ask(const Command& request);

  /// Runs `line` in the login shell with `terminal` as its terminal, and follows its size.
  HostResult run_in_terminal(const std::string& line, const Terminal& terminal);

  /// Whether one of the signals came.
  bool interrupted() const;

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

/// A line for the login shell of a host where dtool-host has answered before: these words as a
/// program beside that job's, in its folder, environment and container
/// (ssh/host/session/session.h).
std::string visit_line(const std::string& state_folder, std::vector<std::string> words);

}  // namespace dtool::ssh
