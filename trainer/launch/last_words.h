// SPDX-License-Identifier: MIT
// How a failing rank reports the reason: in a file that its launcher reads, or on its own stderr.
#pragma once

#include <string>

namespace dtool::trainer {

/// Exit codes of a rank. Together with last words `dtool run` understands them (docs/protocol.md).
enum ExitCode : int {
  kTrained = 0,
  kFailed = 1,
  kMistake = 2,       ///< UsageError
  kOthersFailed = 3,  ///< this rank was well, and stopped because another rank was gone
  kRunFailed = 4,     ///< every rank knows of the failure and reports the same words
};

/// Environment variable with the name of the file.
inline constexpr const char* kLastWordsVariable = "DTOOL_LAST_WORDS";

/// Whether this process's last words are read from a file.
bool has_file_for_last_words();

/// Writes the message and, if there is one, a `hint:` line: to the file, else to stderr after
/// `dtool-trainer: `. Only the first call in a process has an effect; safe from any thread.
void say_last_words(const std::string& message, const std::string& hint = "");

}  // namespace dtool::trainer
