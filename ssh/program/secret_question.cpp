// SPDX-License-Identifier: MIT
#include "ssh/program/secret_question.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

#include "ssh/machine/interrupts.h"
#include "ssh/program/askpass.h"

namespace dtool::ssh {

OwnedFd open_terminal() {
  OwnedFd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (terminal && ::tcgetpgrp(terminal.get()) != ::getpgrp()) terminal.reset();
  return terminal;
}

void show_at(int terminal, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(terminal, text.data(), text.size());
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd writable{terminal, POLLOUT, 0};
      if (::poll(&writable, 1, 1000) <= 0) return;
    } else if (errno != EINTR) {
      return;
    }
  }
}

HiddenTyping::HiddenTyping(int terminal) : terminal_(terminal) {
  is_changed_ = ::tcgetattr(terminal_, &before_) == 0;
  termios hidden = before_;
  hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHOE | ECHOK | ECHONL);
  hidden.c_lflag |= ICANON | ISIG;
  is_changed_ = is_changed_ && ::tcsetattr(terminal_, TCSAFLUSH, &hidden) == 0;
}

HiddenTyping::~HiddenTyping() {
  if (is_changed_) ::tcsetattr(terminal_, TCSADRAIN, &before_);
  show_at(terminal_, "\n");
}

namespace {

/// What a signal leaves of the terminal while nothing else gives it back.
class LeavesTerminal {
 public:
  explicit LeavesTerminal(int terminal) {
    if (::tcgetattr(terminal, &before_) == 0) leave_terminal_with(terminal, &before_, "\n");
  }
  ~LeavesTerminal() { leave_terminal_with(-1, nullptr, nullptr); }
  LeavesTerminal(const LeavesTerminal&) = delete;
  LeavesTerminal& operator=(const LeavesTerminal&) = delete;

 private:
  termios before_{};
};

}  // namespace

std::optional<std::string> ask_secret(std::string_view question) {
  const OwnedFd terminal = open_terminal();
  if (!terminal) return std::nullopt;
  ::prctl(PR_SET_DUMPABLE, 0);  // a core would have the answer
  const EndsAtOnce ends_at_once;
  const LeavesTerminal leaves(terminal.get());
  const HiddenTyping hidden(terminal.get());
  if (!hidden.is_hidden()) return std::nullopt;
  show_at(terminal.get(), question);
  std::string text;
  text.reserve(2 * kMostTyped);  // no copies are left behind
  for (char byte = 0; text.size() < kMostTyped;) {
    pollfd readable{terminal.get(), POLLIN, 0};
    if (::poll(&readable, 1, -1) < 0) continue;
    const ssize_t count = ::read(terminal.get(), &byte, 1);
    if (count == 1 && byte == '\n') return text;
    if (count == 1) text += byte;
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) break;
  }
  wipe(text);
  return std::nullopt;
}

}  // namespace dtool::ssh
