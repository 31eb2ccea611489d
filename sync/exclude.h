// SPDX-License-Identifier: MIT
// Patterns of `--exclude`: which files of a tree are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtool::tree_sync {

/// Shell patterns (`*`, `?`, `[…]`), matched against names relative to the tree's root. A pattern
/// without a slash matches any component of a name. A pattern with a slash matches from the root,
/// and its `*` stops at slashes; `**` between slashes stands for any folders, also none. With a
/// slash at the end it matches only folders. A folder that matches excludes everything below it.
class Excludes {
 public:
  /// Throws std::invalid_argument on a pattern that can match nothing, such as an empty one.
  explicit Excludes(const std::vector<std::string>& patterns);

  /// Whether the file `name` or a folder above it matches.
  bool match_file(std::string_view name) const;
  /// Whether the folder `name` or one above it matches.
  bool match_folder(std::string_view name) const;

  /// The patterns that have matched nothing so far, as given.
  std::vector<std::string> unused() const;

 private:
  enum class Kind { file, folder };
  struct Pattern {
    std::string given;
    std::string text;
    bool is_rooted = false;
    bool is_folder = false;
    mutable bool is_used = false;
  };

  bool match(std::string_view name, Kind kind) const;

  std::vector<Pattern> patterns_;
};

}  // namespace dtool::tree_sync
