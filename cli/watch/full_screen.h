// SPDX-License-Identifier: MIT
// Uses the whole terminal for a while, for `status --watch`.
#pragma once

#include <termios.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"

namespace dtool::cli {

/// What ended a wait.
enum class Woken { time_passed, resized, signalled };

/// Sleeps; a signal ends it.
Woken wait(std::chrono::milliseconds duration);

/// The alternate screen of the terminal on standard output, while it lives; one at a time. Typed
/// keys are not shown. The terminal itself turns `q` into an interrupt signal, so it works whatever
/// dtool is waiting for.
class FullScreen {
 public:
  explicit FullScreen(Console& console);
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  /// Whether standard output is a terminal that supports this.
  static bool is_possible();

  TerminalSize size() const;

  /// Replaces the content. Lines must fit size().
  void draw(const std::vector<std::string>& lines);

  /// Whether the interrupt was a `q`.
  bool quit() const;

 private:
  Console& console_;
  std::optional<termios> before_;
};

}  // namespace dtool::cli
