// SPDX-License-Identifier: MIT
// The terminal's settings are never changed, so a process that is killed leaves it in order. The
// bar is one column narrower than the terminal: on some terminals a cursor in the last column
// wraps.
#include "trainer/report/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
constexpr const char* kClearLine = "\r\033[K";

bool can_redraw(int descriptor) {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && *terminal != '\0' && std::string_view(terminal) != "dumb" &&
         isatty(descriptor) == 1;
}

/// Asked anew for every drawing, so that no signal is needed when the window changes its size.
int columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// Without waiting: a stopped terminal must not stop the training of all ranks.
bool takes_output() {
  pollfd terminal{STDOUT_FILENO, POLLOUT, 0};
  return poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLOUT) != 0;
}

/// A program in the background has no place for a bar.
bool is_in_the_foreground() {
  const pid_t foreground = tcgetpgrp(STDOUT_FILENO);  // -1: a terminal without job control
  return foreground < 0 || foreground == getpgrp();
}

}  // namespace

TrainingConsole::TrainingConsole() : has_bar_(can_redraw(STDOUT_FILENO)) {}

TrainingConsole::~TrainingConsole() {
  fmt::print("{}{}", drawn_ ? "\n" : "", kept_);
  std::fflush(stdout);
}

void TrainingConsole::line(const std::string& text) {
  kept_ += text + "\n";
  if (has_bar_ && !takes_output()) return;
  fmt::print("{}{}", drawn_ ? kClearLine : "", kept_);
  std::fflush(stdout);
  kept_.clear();
  drawn_ = false;
}

void TrainingConsole::draw(const std::function<std::string(int columns)>& bar) {
  if (!has_bar_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + kBetweenDrawings;
  if (!takes_output() || !is_in_the_foreground()) return;
  fmt::print("{}{}{}", kClearLine, kept_, bar(columns() - 1));
  std::fflush(stdout);
  kept_.clear();
  drawn_ = true;
}

const char* over_the_bar() {
  return can_redraw(STDOUT_FILENO) && can_redraw(STDERR_FILENO) ? kClearLine : "";
}

}  // namespace dtool::trainer
