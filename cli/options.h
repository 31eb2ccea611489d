// SPDX-License-Identifier: MIT
// The flags and words of a command, as its file declares them. CLI11 stands behind them; its header
// takes seconds to compile, so that the commands do not include it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dtool::cli {

/// A check of a value as typed: returns the complaint, or nothing.
using Check = std::function<std::string(const std::string& text)>;

/// The allowed values of a flag of whole numbers.
struct WholeNumbers {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::int32_t>::max();
};

/// Flags by their names, each with its values as typed.
using GivenFlags = std::map<std::string, std::vector<std::string>>;

/// One flag or word of a command. A copy stands for the same one, and each change returns it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option check(const Check& check) const;
  /// Allows these words only. Completion knows them too.
  Option one_of(const std::vector<std::string>& words) const;
  Option description(const std::string& text) const;
  /// Title in the help text.
  Option group(const std::string& title) const;
  /// Shows the value before the command line is read as the default.
  Option show_default() const;
  Option required() const;
  /// For a list whose help text shows one value.
  Option take_all() const;
  Option delimiter(char between) const;
  Option needs(Option other) const;
  Option excludes(Option other) const;

  std::string name() const;
  /// Whether the user gave it.
  bool is_given() const;

  auto operator<=>(const Option&) const = default;

 private:
  CLI::Option* option_;
};

/// A command's flags and words. Values are written when the command line is read, so they must live
/// until then. `names` is `--file`, `-f,--file`, or `FILE` for a word; behind a blank, how the help
/// text calls the value: `--file PATH`.
class Options {
 public:
  explicit Options(CLI::App& command) : command_(command) {}

  Option add_flag(const std::string& names, bool& value, const std::string& about);
  /// The value becomes `true`.
  Option add_flag(const std::string& names, std::string& value, const std::string& about);

  /// The value is a std::string, a list of them, a double, or an optional one. A text may not be
  /// empty: an unset shell variable would look like a flag that was left out. Each value of a list
  /// wants the flag again: `--only a --only b`.
  template <typename Value>
  Option add_option(const std::string& names, Value& value, const std::string& about);

  /// The value is an int, a std::size_t, an optional int or std::uint64_t, or a list of int. Whole
  /// numbers are decimal, whatever zeros stand before them.
  template <typename Value>
  Option add_whole_number(const std::string& names, Value& value, const std::string& about,
                          WholeNumbers numbers = {});

  std::optional<Option> find(const std::string& name) const;
  /// The flags that the user gave; no words.
  GivenFlags given() const;
  /// Gives a flag these values, as if they were typed. Throws std::invalid_argument if the command
  /// has no such flag, or the flag refuses them.
  void give(const std::string& name, const std::vector<std::string>& values);
  /// Text below the help.
  void footer(const std::string& text);

 private:
  CLI::App& command_;
};

// The allowed values of flags, each as a check of cli/options.h.

/// The most processes of one machine: --nproc_per_node and run.nproc_per_node of a configuration
/// file.
inline constexpr int kMostProcesses = 4096;

/// Seconds, with or without decimals, from a thousandth to a year.
std::string must_be_seconds(const std::string& text);
/// The value of such a flag.
std::chrono::milliseconds from_seconds(double seconds);
/// A whole number from 1.
std::string must_be_count(const std::string& text);
/// A number in that range, with or without decimals.
Check must_be_from(double least, double most);
/// What is worth a note on a path of hosts: the shell here has made `~` this machine's home folder.
/// `flag` stands before the path. Empty: nothing.
std::string note_on_home(const std::string& flag, const std::string& path);

// The value of `dtool logs --since`: a length of time, or a point in time.

/// How long ago `30s`, `10m`, `2h`, `3d`, `2026-11-25`, `2026-11-25T14:30`, `14:30:05` (today) and
/// the like was at the time `now`; local times, or UTC with a `Z` behind. Nothing if the text is
/// none of these, or lies in the future.
std::optional<std::chrono::seconds> parse_since(const std::string& text, std::time_t now);

/// As a check of cli/options.h.
std::string must_be_since(const std::string& text);

}  // namespace dtool::cli
