// SPDX-License-Identifier: MIT
#include "cli/watch/full_screen.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "ssh/machine/interrupts.h"

namespace dtool::cli {
namespace {

volatile sig_atomic_t was_resized = 0;
volatile sig_atomic_t has_quit = 0;

void on_resize(int) {
  was_resized = 1;
}

/// Passes the key on as an interrupt, which all waits for hosts understand.
void on_quit(int) {
  has_quit = 1;
  ::raise(SIGINT);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

}  // namespace

Woken wait(std::chrono::milliseconds duration) {
  was_resized = 0;
  const int ready = ::poll(nullptr, 0, static_cast<int>(duration.count()));
  if (ready == 0) return Woken::time_passed;
  return was_resized != 0 ? Woken::resized : Woken::signalled;
}

bool FullScreen::is_possible() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

FullScreen::FullScreen(Console& console) : console_(console) {
  has_quit = 0;
  handle(SIGWINCH, on_resize);
  handle(SIGQUIT, on_quit);
  termios now{};
  if (::tcgetattr(STDOUT_FILENO, &now) == 0) {
    before_ = now;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    now.c_cc[VQUIT] = 'q';
    now.c_cc[VSUSP] = _POSIX_VDISABLE;  // stopped, it would leave its screen behind
    ssh::leave_terminal_with(STDOUT_FILENO, &*before_, kLeave);
    ::tcsetattr(STDOUT_FILENO, TCSADRAIN, &now);
  }
  console_.steer(To::out, kEnter);
}

FullScreen::~FullScreen() {
  try {
    console_.steer(To::out, kLeave);
  } catch (const OutputLost&) {
    // The terminal is gone, and nothing is left to put right.
  }
  if (before_) ::tcsetattr(STDOUT_FILENO, TCSAFLUSH, &*before_);
  ssh::leave_terminal_with(-1, nullptr, nullptr);
  handle(SIGWINCH, SIG_DFL);
  handle(SIGQUIT, SIG_DFL);
}

TerminalSize FullScreen::size() const {
  return terminal_size(STDOUT_FILENO);
}

void FullScreen::draw(const std::vector<std::string>& lines) {
  const auto most = static_cast<std::ptrdiff_t>(std::min(lines.size(), size().rows));
  console_.draw({lines.begin(), lines.begin() + most});
}

bool FullScreen::quit() const {
  return has_quit != 0;
}

}  // namespace dtool::cli
