// Words of an experiment file that stand for values.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

/// A word of the file and what it means; the first is the default if there is one.
template <class Value>
struct Choice {
  const char* word;
  Value value;
};

enum class Default { first, none };

/// The value whose word the file has at `key`. Throws UsageError for any other word.
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

/// The first of `keys` that is given is an error, for the reason `why`.
inline void refuse_all(const TomlReader& reader, const std::vector<std::string>& keys,
                       const std::string& why) {
  for (const auto& key : keys) reader.refuse_if_given(key, why);
}

}  // namespace dtool::trainer
