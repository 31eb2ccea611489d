// SPDX-License-Identifier: MIT
// Starts the workers of this machine if no launcher starts a process per rank: `dtool-trainer
// EXPERIMENT --nproc_per_node N` by hand.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/launch/launch.h"

namespace dtool::trainer {

// How a failing rank reports the reason: in a file that its launcher reads, or on its own stderr.

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

/// Starts a worker for each local rank and waits for all; `first` is the place of the first worker.
/// If one fails, the others are killed, and the last line on stderr is the reason. SIGINT, SIGTERM
/// (also for SIGHUP) and SIGUSR1 are passed on to the workers; after the first two the workers have
/// kTerminationGrace. They die with this process. Returns this process's exit code: 0, 1, 2 if the
/// cause is a user's mistake, or 128 + the signal that ended this process. Throws
/// std::system_error.
int run_workers(const Place& first, const std::filesystem::path& program,
                const std::vector<std::string>& arguments, int threads);

// What a worker needs of this machine.

/// The libraries, and versions of libraries (`GLIBC_2.38`), that the program needs and this machine
/// lacks; the program itself if it cannot be started. The loader is asked, as ldd(1) does; the
/// program does not run. Throws std::system_error.
std::vector<std::string> missing_libraries(const std::filesystem::path& program);

/// The same from the loader's words.
std::vector<std::string> missing_in_trace(std::string_view trace);

}  // namespace dtool::trainer
