// SPDX-License-Identifier: MIT
// Questions of `ssh` to the user (passwords, one-time codes, passphrases, PINs). Each ssh runs
// dtool itself for them (SSH_ASKPASS). That process hands the prompt to the dtool that waits for
// the connection (asker.h), over a socket in a private folder. An answer never stands in an
// argument, a variable or a file.
#pragma once

#include <termios.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/machine/files.h"

namespace dtool::ssh {

/// Whether ssh started this process to ask something: dtool gives ssh a variable, and ssh gives one
/// argument.
bool is_askpass(int argc);

/// Prints the answer to `prompt`; returns 1 if there is none.
int askpass(const std::string& prompt);

/// The environment that makes ssh ask at the socket `name` of KeptFolder.
std::vector<std::string> askpass_environment(const std::string& name);

/// The first byte of a message to the asking dtool: the kind of question.
namespace askpass_protocol {
constexpr char kSecret = 's';
constexpr char kConfirmation = 'c';
constexpr char kNotice = 'n';  ///< no answer: it is shown until its sender has gone
// The first byte of the answer.
constexpr char kGiven = 'y';
constexpr char kRefused = 'n';
constexpr std::size_t kLongestPrompt = 1000;
}  // namespace askpass_protocol

/// Overwrites a secret, so that it stays in no memory.
void wipe(std::string& secret);

// A secret that the user types at the terminal, unseen.

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
/// came. Whoever has the answer wipes it (wipe()).
std::optional<std::string> ask_secret(std::string_view question);

}  // namespace dtool::ssh
