// SPDX-License-Identifier: MIT
// What the user may have meant: the known word nearest to an unknown one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::killfiles {

/// The candidate that the fewest typing errors (a letter added, left out, changed, or two swapped)
/// turn into `word`; the first of equals. Nothing if even the nearest differs in more than a third
/// of the word's letters.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

/// The same for a word that may be the mere beginning of a candidate, as of a run's id.
std::optional<std::string> nearest_beginning(std::string_view word,
                                             const std::vector<std::string>& candidates);

/// A second line for a message about an unknown word: `\nhint: did you mean 'x'?`, else all
/// candidates; nothing if there are none.
std::string hint_at(std::string_view word, const std::vector<std::string>& candidates);

/// For a file that is not there: `did you mean X?`, of the names in its folder, or empty.
std::string nearest_file(const std::filesystem::path& file);

}  // namespace dtool::killfiles
