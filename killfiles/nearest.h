// What the user may have meant: the known word nearest to an unknown one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::killfiles {

/// The candidate that fewest slips of the finger (letter added, left out, changed, or two swapped)
/// make of `word`; the first of equals. Nothing if the nearest is further than a third of the
/// word's length.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

/// A second line for a message about an unknown word: `\nhint: did you mean 'x'?`, else all
/// candidates; nothing if there are none.
std::string hint_at(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace dtool::killfiles
