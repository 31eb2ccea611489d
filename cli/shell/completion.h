// SPDX-License-Identifier: MIT
// The possible next words of a command line. The shells' completion scripts ask for them with
// `dtool __complete`. They come from the same tables as --help.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dtool::cli {

/// A possible word.
struct Candidate {
  std::string word;
  std::string about;  ///< a short description, or empty

  bool operator==(const Candidate&) const = default;
};

enum class Files { no, yes };

struct Completion {
  std::vector<Candidate> candidates;
  Files files = Files::no;  ///< file names are possible too
};

/// Values that are looked up only when needed.
struct LiveValues {
  std::function<std::vector<Candidate>()> runs;         ///< recorded runs, newest first
  std::function<std::vector<Candidate>()> hosts;        ///< groups, and hosts of recorded runs
  std::function<std::vector<Candidate>()> experiments;  ///< those that come with dtool
  /// Numbers of the machines of a run; `run` is its id or a prefix, or empty for the newest.
  std::function<std::vector<Candidate>(const std::string& run)> machines;
};

/// The real ones. Values that cannot be read are left out, because completion cannot show errors.
LiveValues live_values();

/// The possible replacements for the last of `words` (the words after `dtool`), given its typed
/// beginning (may be empty).
Completion complete(const CLI::App& app, const std::vector<std::string>& words,
                    const LiveValues& live);

/// One line per candidate, `word TAB about`, and `:files` if file names are possible. The words are
/// as they are: the shells' scripts quote them.
std::string to_lines(const Completion& completion);

}  // namespace dtool::cli
