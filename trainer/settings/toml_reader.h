// SPDX-License-Identifier: MIT
// Reads the keys of a TOML file one by one, with their defaults and limits, remembers each for
// the settings table, and at the end refuses every key that no setting has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "killfiles/strict_toml.h"

namespace dtool::trainer {

enum class Origin { given, by_default };

/// One row of the settings table.
struct Setting {
  std::string key;
  std::string value;
  Origin origin = Origin::given;
};

template <class Number>
struct Limits {
  Number least;
  Number most;
};

/// A key is written as in TOML, `table.key`. Each function returns the file's value or the default.
/// It throws UsageError naming file, line and key if the value has the wrong type or is out of its
/// limits.
class TomlReader {
 public:
  /// Throws UsageError if the file cannot be read or is not TOML.
  explicit TomlReader(const std::filesystem::path& file);

  /// Into a field, whose value is the default.
  void read(const std::string& key, std::int64_t& field, Limits<std::int64_t> limits) {
    field = integer(key, field, limits);
  }
  void read(const std::string& key, int& field, Limits<int> limits) {
    field = static_cast<int>(integer(key, field, {limits.least, limits.most}));
  }
  void read(const std::string& key, double& field, Limits<double> limits) {
    field = number(key, field, limits);
  }
  void read(const std::string& key, bool& field) { field = boolean(key, field); }

  std::int64_t integer(const std::string& key, std::int64_t standard, Limits<std::int64_t> limits);
  double number(const std::string& key, double standard, Limits<double> limits);
  std::string text(const std::string& key, const std::string& standard);
  bool boolean(const std::string& key, bool standard);
  std::vector<std::int64_t> integers(const std::string& key, std::vector<std::int64_t> standard,
                                     Limits<std::int64_t> limits);
  std::vector<double> numbers(const std::string& key, std::vector<double> standard,
                              Limits<double> limits);
  std::vector<std::string> texts(const std::string& key, std::vector<std::string> standard);
  /// One of the words `choices`; without a default the key is required.
  std::string word(const std::string& key, const std::vector<std::string>& choices,
                   std::optional<std::string> standard = std::nullopt);
  /// Absent if the file does not have it; then it is not in the settings table either.
  std::optional<std::int64_t> integer_if_given(const std::string& key, Limits<std::int64_t> limits);
  std::optional<double> number_if_given(const std::string& key, Limits<double> limits);
  /// Any value but a date, as JSON: for a program of others, which knows what it has to be.
  std::optional<std::string> json_if_given(const std::string& key);

  /// The number of tables in the list `key` (`[[key]]`); the first one's keys are `key[0].name`.
  std::size_t count_tables(const std::string& key);

  bool has(const std::string& key) const;
  /// `file:line:column` of a key that the file gives, else `file`: where a message points.
  std::string where(const std::string& key) const;

  /// For a key that other settings exclude: throws UsageError "`key` `why`" if the file has it.
  void refuse_if_given(const std::string& key, const std::string& why) const;

  /// Throws UsageError for the first key that was never read, with the nearest known one.
  void refuse_unknown_keys() const;

  const std::vector<Setting>& settings() const { return settings_; }

 private:
  struct Found;  ///< the table that holds a key, and the key's name in it
  std::optional<Found> find(const std::string& key) const;
  template <class Value>
  using Getter = std::optional<Value> (killfiles::StrictTable::*)(std::string_view) const;
  template <class Value>
  std::optional<Value> get(const std::string& key, Getter<Value> getter);
  template <class Value, class Number>
  std::optional<Value> get_within(const std::string& key, Getter<Value> getter,
                                  Limits<Number> limits);
  template <class Number>
  void check_limits(const std::string& key, Number value, Limits<Number> limits) const;
  template <class Value>
  Value remember(const std::string& key, const std::optional<Value>& given, Value standard);

  std::string file_;
  killfiles::StrictTable root_;
  std::vector<std::string> known_;
  std::vector<Setting> settings_;
};

// The table of settings that rank 0 prints before it trains.

enum class Shown { given, all };

/// One line per setting, in columns. Of the defaults, which are marked, it has all or their number.
std::string settings_table(const std::vector<Setting>& settings, Shown shown);

// Words of an experiment file that stand for values.

/// The limit of a number that has none.
inline constexpr std::int64_t kMany = std::numeric_limits<std::int64_t>::max();

/// A word of the file and its meaning; the first one is the default if there is one.
template <class Value>
struct Choice {
  const char* word;
  Value value;
};

enum class Default { first, none };

/// The value of the word at `key` in the file. Throws UsageError for any other word.
template <class Value>
Value choose(TomlReader& reader, const std::string& key, const std::vector<Choice<Value>>& choices,
             Default standard = Default::first) {
  std::vector<std::string> words;
  for (const auto& each : choices) words.emplace_back(each.word);
  const auto word =
      standard == Default::first ? reader.word(key, words, words.front()) : reader.word(key, words);
  return choices[static_cast<std::size_t>(std::find(words.begin(), words.end(), word) -
                                          words.begin())]
      .value;
}

/// Throws UsageError with the reason `why` if one of `keys` is given.
inline void refuse_all(const TomlReader& reader, const std::vector<std::string>& keys,
                       const std::string& why) {
  for (const auto& key : keys) reader.refuse_if_given(key, why);
}

}  // namespace dtool::trainer
