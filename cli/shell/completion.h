// SPDX-License-Identifier: MIT
// What comes from the same tables as --help: the possible next words of a command line, for which
// the shells' completion scripts ask with `dtool __complete`, and the man pages.
#pragma once

#include <filesystem>
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

// Man pages. The build writes them with the hidden `dtool __man FOLDER DATE`.

/// The page of dtool, or of a subcommand of it, in the language of man(7). `date` is `2026-11-21`.
std::string man_page(const CLI::App& app, const std::string& date);

/// Writes dtool.1 and dtool-COMMAND.1 for every command into `folder`, which is made if missing.
/// Throws std::system_error naming the file.
void write_man_pages(const CLI::App& app, const std::filesystem::path& folder,
                     const std::string& date);

}  // namespace dtool::cli
