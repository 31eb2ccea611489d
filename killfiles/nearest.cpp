// SPDX-License-Identifier: MIT
// Edit distance over short words.
#include "killfiles/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

namespace dtool::killfiles {
namespace {

// Optimal string alignment distance: Levenshtein's with swaps of neighbours. Three rows of the
// table are kept.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({change, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestWord = 100;  // no mistyped word is longer
  if (word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string> best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t slips = distance(word, candidate);
    if (slips < least) {
      least = slips;
      best = candidate;
    }
  }
  return best;
}

std::optional<std::string> nearest_beginning(std::string_view word,
                                             const std::vector<std::string>& candidates) {
  constexpr std::size_t kFewest = 4;  // letters: every short word is near to some beginning
  if (auto whole = nearest(word, candidates); whole || word.size() < kFewest) return whole;
  std::vector<std::string> beginnings;
  for (const std::string& each : candidates) beginnings.push_back(each.substr(0, word.size()));
  const auto meant = nearest(word, beginnings);
  if (!meant) return std::nullopt;
  return candidates[static_cast<std::size_t>(std::ranges::find(beginnings, *meant) -
                                             beginnings.begin())];
}

std::string hint_at(std::string_view word, const std::vector<std::string>& candidates) {
  if (const auto meant = nearest(word, candidates)) {
    return fmt::format("\nhint: did you mean '{}'?", *meant);
  }
  if (candidates.empty()) return "";
  return fmt::format("\nhint: known are {}", fmt::join(candidates, ", "));
}

std::string nearest_file(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::vector<std::string> names;
  std::error_code unseen;
  for (const auto& each : std::filesystem::directory_iterator(folder, unseen))
    names.push_back(each.path().filename());
  std::ranges::sort(names);
  const auto meant = nearest(file.filename().string(), names);
  return meant ? fmt::format("did you mean {}?", (file.parent_path() / *meant).string()) : "";
}

}  // namespace dtool::killfiles
