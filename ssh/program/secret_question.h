// SPDX-License-Identifier: MIT
// A secret that the user types at the terminal, unseen.
#pragma once

#include <termios.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/machine/files.h"

namespace dtool::ssh {

/// The longest secret, in bytes.
inline constexpr std::size_t kMostTyped = 4000;

/// This process's terminal, non-blocking, if the process is in the foreground; a background process
/// would be stopped for using it.
OwnedFd open_terminal();

void show_at(int terminal, std::string_view text);

/// Hides typed characters while it lives.
class HiddenTyping {
 public:
  explicit HiddenTyping(int terminal);
  ~HiddenTyping();
  HiddenTyping(const HiddenTyping&) = delete;
  HiddenTyping& operator=(const HiddenTyping&) = delete;

  bool is_hidden() const { return is_changed_; }

 private:
  int terminal_;
  termios before_{};
  bool is_changed_ = false;
};

/// Asks and waits; a signal ends this process meanwhile. Nothing: there is no terminal, or its end
/// came. Whoever has the answer wipes it (askpass.h).
std::optional<std::string> ask_secret(std::string_view question);

}  // namespace dtool::ssh
