// SPDX-License-Identifier: MIT
// How a run's process ended, in words: its exit code or signal, and its own message. A process may
// write why it fails into the file that DTOOL_LAST_WORDS names, with a `hint:` line after it.
// Together with such a message some exit codes have a meaning (docs/protocol.md).
#pragma once

#include <string>
#include <vector>

namespace dtool::host {

/// What the end of a process means for the run.
enum class Meaning {
  failure,
  mistake,   ///< the user's mistake: another attempt would end the same way
  aftermath  ///< the process was well, and stopped because another one was gone
};

struct RankEnd {
  std::string who;      ///< `rank 3 on machine 1`
  int code = 0;         ///< 128 + signal if a signal ended it
  std::string words{};  ///< its own message in one line, with the hint; or empty
  std::string last{};   ///< the line of its output that explains its end; or empty
};

/// The file for the message of a rank, in the machine's state folder.
std::string last_words_file(int attempt, int rank);

/// The message in that file, or an empty text.
std::string read_last_words(const std::string& path);

Meaning meaning_of(const RankEnd& end);

/// `rank 3 on machine 1 was killed by signal 9 (KILL)`, followed by `detail` and the process's
/// message, or its last line; or only the message if that says it all.
std::string describe(const RankEnd& end, const std::string& detail = {});

// `dtool-host cause`: why an attempt of a scheduler's job failed, by what its processes have left
// in the run's folder. The job's script calls it when the attempt is over.

/// `words`: the run's folder, the attempt, the place of the job's first machine, and how many
/// machines it has. Prints the cause in one line, or nothing if no process failed by itself, and
/// writes where it lies into the state folder of each machine (ssh/host/explaining_line.h). Returns
/// 0 if another attempt may end better, and 3 after a mistake of the user.
int tell_job_cause(const std::vector<std::string>& words);

}  // namespace dtool::host
