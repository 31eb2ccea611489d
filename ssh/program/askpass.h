// SPDX-License-Identifier: MIT
// Questions of `ssh` to the user (passwords, one-time codes, passphrases, PINs). Each ssh runs
// dtool itself for them (SSH_ASKPASS). That process hands the prompt to the dtool that waits for
// the connection (asker.h), over a socket in a private folder. An answer never stands in an
// argument, a variable or a file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

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

}  // namespace dtool::ssh
