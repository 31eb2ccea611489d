// How a run's process ended, in words: its exit code or signal, and what it said itself. A process
// may write why it fails into the file that DTOOL_LAST_WORDS names, and a `hint:` line behind it;
// with such words some exit codes have a meaning (docs/protocol.md).
#pragma once

#include <string>

namespace dtool::host {

/// What a process's end means for the run.
enum class Meaning {
  failure,
  mistake,   ///< the user's: another attempt would end the same
  aftermath  ///< the process was well, and stopped because another one was gone
};

struct RankEnd {
  std::string who;      ///< `rank 3 on machine 1`
  int code = 0;         ///< 128 + signal if one ended it
  std::string words{};  ///< its own, in one line, with the hint; or empty
};

/// The file for the words of a rank, in the machine's state folder.
std::string last_words_file(int attempt, int rank);

/// What stands there, or nothing.
std::string read_last_words(const std::string& path);

Meaning meaning_of(const RankEnd& end);

/// `rank 3 on machine 1 was killed by signal 9 (KILL)`, with `detail` and the words behind it, or
/// the words alone where they say it all.
std::string describe(const RankEnd& end, const std::string& detail = {});

}  // namespace dtool::host
