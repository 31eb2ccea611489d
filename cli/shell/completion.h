// What may come next on a command line: the answer that the shells' completion scripts ask for with
// `dtool __complete`. It is made from the tables that --help is made from.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dtool::cli {

/// A word that may stand there.
struct Candidate {
  std::string word;
  std::string about;  ///< a few words on it, or empty

  bool operator==(const Candidate&) const = default;
};

enum class Files { no, yes };

struct Completion {
  std::vector<Candidate> candidates;
  Files files = Files::no;  ///< names of files may stand there too
};

/// Values that are looked up when they are asked for, never before.
struct LiveValues {
  std::function<std::vector<Candidate>()> runs;         ///< recorded ones, newest first
  std::function<std::vector<Candidate>()> hosts;        ///< groups, and hosts of recorded runs
  std::function<std::vector<Candidate>()> experiments;  ///< that come with dtool
  /// Numbers of the machines of a run; `run` is its id or a prefix, or empty for the newest.
  std::function<std::vector<Candidate>(const std::string& run)> machines;
};

/// The real ones. What cannot be read is left out: completion has nobody to complain to.
LiveValues live_values();

/// What may stand in place of the last of `words`, the words after `dtool`, given what is typed of
/// it (it may be empty).
Completion complete(const CLI::App& app, const std::vector<std::string>& words,
                    const LiveValues& live);

/// A line a candidate, `word TAB about`, and `:files` where files may stand there.
std::string to_lines(const Completion& completion);

}  // namespace dtool::cli
