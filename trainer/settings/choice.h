// SPDX-License-Identifier: MIT
// Words of an experiment file that stand for values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

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
