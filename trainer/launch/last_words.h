// How a failing worker tells why: through a pipe to its machine's process, which prints it once, or
// on its own stderr where another launcher started it.
#pragma once

#include <string>

namespace dtool::trainer {

/// Exit codes of a worker, which its machine's process passes on or explains.
enum ExitCode : int {
  kTrained = 0,
  kFailed = 1,
  kMistake = 2,       ///< UsageError
  kOthersFailed = 3,  ///< this worker was well, and stopped because another rank had failed
  kRunFailed = 4,     ///< every rank knows of the failure and says the same words
};

/// Names the pipe's file descriptor in the worker's environment.
inline constexpr const char* kLastWordsVariable = "DTOOL_TRAINER_LAST_WORDS_FD";

/// Writes `dtool-trainer: message` and, if there is one, the `hint:` line. Only the first call in a
/// process has an effect; safe from any thread.
void say_last_words(const std::string& message, const std::string& hint = "");

}  // namespace dtool::trainer
