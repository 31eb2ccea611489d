// SPDX-License-Identifier: MIT
// Puts this process's terminal into raw mode for `dtool attach`, and restores it when destroyed.
#pragma once

#include <termios.h>

#include "ssh/fanout/terminal_link.h"

namespace dtool::cli {

class RawTerminal {
 public:
  /// Throws UsageError if standard input and output are not a terminal.
  RawTerminal();
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  /// The terminal for a program on a host.
  ssh::Terminal terminal() const;

 private:
  termios before_{};
  // Opened anew, so that their settings do not affect the shell's descriptors.
  int in_ = -1;
  int out_ = -1;
};

/// Throws UsageError if standard input and output are not a terminal.
void require_terminal();

}  // namespace dtool::cli
