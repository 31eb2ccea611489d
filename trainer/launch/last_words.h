// How a failing rank tells why: in a file that whoever started it reads, or on its own stderr.
#pragma once

#include <string>

namespace dtool::trainer {

/// Exit codes of a rank. With last words they mean the same to `dtool run` (docs/protocol.md).
enum ExitCode : int {
  kTrained = 0,
  kFailed = 1,
  kMistake = 2,       ///< UsageError
  kOthersFailed = 3,  ///< this rank was well, and stopped because another rank was gone
  kRunFailed = 4,     ///< every rank knows of the failure and says the same words
};

/// Names the file in the rank's environment.
inline constexpr const char* kLastWordsVariable = "DTOOL_LAST_WORDS";

/// Whether somebody reads this process's last words in a file.
bool has_file_for_last_words();

/// Writes the message and, if there is one, a `hint:` line: into the file, else on stderr behind
/// `dtool-trainer: `. Only the first call in a process has an effect; safe from any thread.
void say_last_words(const std::string& message, const std::string& hint = "");

}  // namespace dtool::trainer
