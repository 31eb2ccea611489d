// SPDX-License-Identifier: MIT
#include "cli/logs/raw_terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/action.h"
#include "ssh/machine/interrupts.h"

namespace dtool::cli {

void require_terminal() {
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) return;
  throw UsageError("dtool attach needs a terminal for its input and output",
                   "dtool logs shows what a machine prints");
}

RawTerminal::RawTerminal() {
  require_terminal();
  const char* name = ::ttyname(STDIN_FILENO);
  constexpr int kFlags = O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  in_ = ::open(name != nullptr ? name : "/dev/tty", O_RDWR | kFlags);
  out_ = ::open(name != nullptr ? name : "/dev/tty", O_RDWR | kFlags);
  if (in_ < 0 || out_ < 0 || ::tcgetattr(in_, &before_) != 0) {
    ::close(in_);
    ::close(out_);
    throw UsageError("cannot open the terminal");
  }
  termios raw = before_;
  ::cfmakeraw(&raw);
  ssh::leave_terminal_with(in_, &before_, nullptr);
  ::tcsetattr(in_, TCSADRAIN, &raw);
}

RawTerminal::~RawTerminal() {
  ::tcsetattr(in_, TCSADRAIN, &before_);
  ssh::leave_terminal_with(-1, nullptr, nullptr);
  ::close(in_);
  ::close(out_);
}

ssh::Terminal RawTerminal::terminal() const {
  const char* type = std::getenv("TERM");
  return {in_, out_, type != nullptr && *type != '\0' ? type : "xterm", {}};
}

}  // namespace dtool::cli
