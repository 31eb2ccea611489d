// This process's terminal with every key passed on, for `dtool attach`; as it was before when this
// is destroyed.
#pragma once

#include <termios.h>

#include "ssh/fanout/terminal_link.h"

namespace dtool::cli {

class RawTerminal {
 public:
  /// Throws UsageError if standard input and output are no terminal.
  RawTerminal();
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  /// The terminal as a program on a host is to have it.
  ssh::Terminal terminal() const;

 private:
  termios before_{};
  // Opened anew, so that what is set on them is not set on the shell's own.
  int in_ = -1;
  int out_ = -1;
};

/// Throws UsageError if standard input and output are no terminal.
void require_terminal();

}  // namespace dtool::cli
