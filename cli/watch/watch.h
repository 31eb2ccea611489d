// SPDX-License-Identifier: MIT
// `dtool status --watch`: shows the status of a run again and again until it has ended.
#pragma once

#include <termios.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Redraws in place on a terminal; elsewhere prints a block per round. Pauses for `interval`
/// between rounds and keeps the connections. Ends with the run, by `q` (on a terminal) and by
/// Ctrl-C. Returns dtool's exit code.
int watch(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile,
          std::chrono::milliseconds interval);

// Uses the whole terminal for a while, for `status --watch`.

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
