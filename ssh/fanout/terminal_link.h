// One host and this machine's terminal: commands on it, and one that has the terminal to itself,
// all over one connection. `dtool attach` uses it; everything else goes through Remote.
#pragma once

#include <memory>
#include <string>

#include "ssh/fleet.h"
#include "ssh/host.h"
#include "ssh/remote.h"

namespace dtool::ssh {

/// A terminal of this machine. The descriptors are two, even of one device, and non-blocking; the
/// caller owns them and has put the terminal into raw mode.
struct Terminal {
  int in = -1;
  int out = -1;
  std::string type;  ///< as TERM names it
};

class TerminalLink {
 public:
  /// Reaches nobody yet. SIGINT, SIGTERM and SIGHUP end what runs as a lost connection would.
  TerminalLink(Host host, const ConnectOptions& options);
  ~TerminalLink();
  TerminalLink(const TerminalLink&) = delete;
  TerminalLink& operator=(const TerminalLink&) = delete;

  /// Has dtool-host answer a request (ssh/host_request.h), for a minute at most.
  HostResult ask(const Command& request);

  /// Runs `line` in the login shell with `terminal` as its terminal, whose size it follows.
  HostResult run_in_terminal(const std::string& line, const Terminal& terminal);

  /// Whether one of the signals came.
  bool interrupted() const;

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace dtool::ssh
