// SPDX-License-Identifier: MIT
// The terminal's settings are never changed, so a process that is killed leaves it in order. The
// bar is one column narrower than the terminal: on some terminals a cursor in the last column
// wraps.
#include "trainer/report/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
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

// The bar and the lines have the same content.

namespace {

constexpr auto kBetweenLines = std::chrono::seconds(5);
constexpr int kBarWidth = 20;

}  // namespace

std::string human_bytes(std::int64_t bytes) {
  constexpr const char* units[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  auto value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.95 && unit < 3) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string transfer_text(const TransferState& state, TransferBar bar) {
  std::string text = state.name;
  if (state.total && *state.total > 0) {
    const double part =
        std::clamp(static_cast<double>(state.done) / static_cast<double>(*state.total), 0., 1.);
    if (bar == TransferBar::yes) {
      const auto full = static_cast<int>(part * kBarWidth);
      text += fmt::format("  [{}{}]", std::string(full, '#'), std::string(kBarWidth - full, ' '));
    }
    text += fmt::format("  {:.0f} % of {}", part * 100, human_bytes(*state.total));
  } else {
    text += "  " + human_bytes(state.done);
  }
  const double seconds = state.passed.count();
  const double rate =
      seconds > 0 ? static_cast<double>(state.done - state.begun_with) / seconds : 0;
  return text + fmt::format("  {}/s", human_bytes(static_cast<std::int64_t>(std::max(rate, 0.))));
}

void TransferProgress::begin(const std::string& name, std::int64_t done) {
  name_ = name;
  begun_with_ = done;
  begin_ = shown_ = Clock::now();
}

void TransferProgress::update(std::int64_t done, std::optional<std::int64_t> total) {
  const auto now = Clock::now();
  const TransferState state{name_, begun_with_, done, total, now - begin_};
  console_.draw([&](int columns) {
    return (prefix_ + transfer_text(state, TransferBar::yes))
        .substr(0, static_cast<std::size_t>(columns));
  });
  if (console_.has_bar() || now - shown_ < kBetweenLines) return;
  shown_ = now;
  say(transfer_text(state, TransferBar::no));
}

void TransferProgress::finish(std::int64_t size, const std::string& source) {
  say(fmt::format("{}: {} from {} in {:.1f} s", name_, human_bytes(size), source,
                  std::chrono::duration<double>(Clock::now() - begin_).count()));
}

void TransferProgress::say(const std::string& text) {
  console_.line(prefix_ + text);
}

const char* over_the_bar() {
  return can_redraw(STDOUT_FILENO) && can_redraw(STDERR_FILENO) ? kClearLine : "";
}

}  // namespace dtool::trainer
