// SPDX-License-Identifier: MIT
// Lets the lines of a log through that a request wants: of some ranks, or with a pattern.
#pragma once

#include <regex.h>

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "ssh/host/rank_log.h"
#include "ssh/wire/run.h"

namespace dtool::host {

/// The longest pattern of `dtool logs --grep`.
inline constexpr std::size_t kLongestPattern = 1000;

/// A POSIX extended regular expression. Throws std::runtime_error with the reason if it is none.
class Pattern {
 public:
  explicit Pattern(const std::string& text);
  /// Whether some part of the line matches. The line's NULs count as blanks.
  bool is_in(std::string_view line) const;

 private:
  struct Free {
    void operator()(regex_t* compiled) const;
  };
  std::unique_ptr<regex_t, Free> compiled_;
};

class LogFilter {
 public:
  /// A line beyond it counts as several.
  static constexpr std::size_t kLongestLine = 1U << 20U;

  /// Throws std::runtime_error if the pattern is none.
  explicit LogFilter(const LogRequest& request);

  /// Which ranks are in the log, and whether its lines have marks.
  void set_ranks(const LogRanks& ranks);

  /// Takes bytes of the log, and returns the lines that are let through, whole.
  std::string add(std::string_view bytes);
  /// The last line, if it has no end and is let through.
  std::string rest();
  /// Bytes of a line whose end has not come.
  std::size_t held() const { return open_.size(); }

 private:
  bool lets_through(std::string_view line) const;
  void take(std::string_view line, std::string& passed);

  std::set<int> ranks_;  ///< empty: all
  std::unique_ptr<Pattern> pattern_;
  bool are_marked_ = false;
  bool is_unmarked_of_rank_ = false;  ///< a line without marks, in a log that has none
  std::string open_;
};

}  // namespace dtool::host
